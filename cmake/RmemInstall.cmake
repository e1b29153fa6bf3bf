# SPDX-License-Identifier: Apache-2.0
# What a user needs to find an installed rmem: the CMake package, the pkg-config files, the manual.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rmem)
install(EXPORT rmemTargets NAMESPACE rmem:: FILE rmemTargets.cmake DESTINATION ${package_dir})
get_property(rmem_components GLOBAL PROPERTY rmem_components)
list(JOIN rmem_components " " rmem_components)
set(rmem_boost_components context)
if(TARGET dp)
    list(APPEND rmem_boost_components graph)
endif()
list(JOIN rmem_boost_components " " rmem_boost_components)
configure_package_config_file(cmake/rmemConfig.cmake.in rmemConfig.cmake
    INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(rmemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/rmemConfig.cmake
    ${PROJECT_BINARY_DIR}/rmemConfigVersion.cmake
    DESTINATION ${package_dir})

# From the .pc file back to the prefix, so that an installed tree can be moved.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_prefix /prefix/${pkgconfig_dir} /prefix)
foreach(library IN ITEMS rmem billboard)
    configure_file(cmake/${library}.pc.in ${library}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${pkgconfig_dir})
endforeach()
get_property(ports GLOBAL PROPERTY rmem_ports)
foreach(port IN LISTS ports)
    get_property(description GLOBAL PROPERTY rmem_port_${port})
    configure_file(cmake/port.pc.in ${port}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${port}.pc DESTINATION ${pkgconfig_dir})
endforeach()

foreach(section IN ITEMS 1 3 7)
    file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.${section})
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
