# SPDX-License-Identifier: Apache-2.0
# What a user needs to find an installed rmem: the CMake package, the pkg-config files, the manual.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rmem)
install(EXPORT rmemTargets NAMESPACE rmem:: FILE rmemTargets.cmake DESTINATION ${package_dir})
get_property(rmem_components GLOBAL PROPERTY rmem_components)
list(JOIN rmem_components " " rmem_components)
set(rmem_boost_components context)
get_property(rmem_decoder GLOBAL PROPERTY rmem_decoder)
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
    cmake/RmemCaptureStores.cmake
    DESTINATION ${package_dir})

# From the .pc file back to the prefix, so that an installed tree can be moved.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_prefix /prefix/${pkgconfig_dir} /prefix)
foreach(library IN ITEMS rmem rmem-maps billboard)
    configure_file(cmake/${library}.pc.in ${library}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${pkgconfig_dir})
endforeach()
get_property(ports GLOBAL PROPERTY rmem_ports)
foreach(port IN LISTS ports)
    get_property(description GLOBAL PROPERTY rmem_port_${port})
    configure_file(cmake/port.pc.in ${port}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${port}.pc DESTINATION ${pkgconfig_dir})
endforeach()
get_property(cards GLOBAL PROPERTY rmem_cards)
foreach(card IN LISTS cards)
    get_property(description GLOBAL PROPERTY rmem_card_${card})
    configure_file(cmake/card.pc.in ${card}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${card}.pc DESTINATION ${pkgconfig_dir})
endforeach()

# The guides, for those without a clone; links between the pages hold.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN man EXCLUDE)

# The manual. A page's NAME section lists what is found by it: every name but the page's own becomes
# a link to it, in the page's section, or, where the page is one of section 7, among the calls.
# Those of parts that are not built are left out.
set(left_out "")
if(NOT RMEM_BUILD_PORTS)
    list(APPEND left_out "(fm|gamma|dp|munet)\\.7")
endif()
if(NOT RMEM_BUILD_MPI)
    list(APPEND left_out "mpirun-.*\\.1")
endif()
if(NOT RMEM_BUILD_SIMULATOR)
    list(APPEND left_out "rmem-sim\\.1")
endif()
if(NOT RMEM_BUILD_TOOLS)
    list(APPEND left_out "rmem(-([^c]|c[^c]).*)?\\.1") # rmem-cc is the library's
endif()
foreach(section IN ITEMS 1 3 7)
    file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.${section})
    foreach(page IN LISTS left_out)
        list(FILTER pages EXCLUDE REGEX "/${page}$")
    endforeach()
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages})
    set(link_section ${section})
    if(section EQUAL 7)
        set(link_section 3)
    endif()
    foreach(page IN LISTS pages)
        get_filename_component(own ${page} NAME_WLE)
        file(READ ${page} text)
        string(REGEX MATCH "\n\\.Sh NAME\n.*\n\\.Nd" text "${text}")
        string(REGEX MATCHALL "\n\\.Nm [^ \n]+" names "${text}")
        list(TRANSFORM names REPLACE "\n\\.Nm " "")
        list(REMOVE_ITEM names ${own})
        foreach(name IN LISTS names)
            set(link ${PROJECT_BINARY_DIR}/man/${name}.${link_section})
            file(CONFIGURE OUTPUT ${link} CONTENT ".so man${section}/${own}.${section}\n")
            install(FILES ${link} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${link_section})
        endforeach()
    endforeach()
endforeach()
