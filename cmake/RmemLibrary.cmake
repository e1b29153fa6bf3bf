# SPDX-License-Identifier: Apache-2.0

# rmem_library(<name> <define> [C_HEADERS_ONLY] [INTERNAL] MARKED <source>... [LIBRARIES
#     <library>...] [PRIVATE_LIBRARIES <library>...])
#
# Makes the library <name> (alias rmem::<name>), static with BUILD_SHARED_LIBS=OFF, of the sources
# in the current folder and below it, and <name>_marked, a static library with the kill marks
# compiled in, for the tests that stop a process at a named place. MARKED are the sources that
# include rmem/base/marks.hpp, perhaps by other headers; of the others both have the same objects.
# <define> is set while the library itself compiles. LIBRARIES are other libraries of this project
# that its headers need. Its headers are found from the root of the tree and installed below the
# folder's name; with C_HEADERS_ONLY those for C alone. INTERNAL:
# static, not installed, and built only when another part is made of it.
function(rmem_library name define)
    cmake_parse_arguments(PARSE_ARGV 2 arg
        "C_HEADERS_ONLY;INTERNAL" "" "MARKED;LIBRARIES;PRIVATE_LIBRARIES")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)

    if(sources)
        if(arg_INTERNAL)
            add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources})
        else()
            add_library(${name} ${sources})
        endif()
        set_target_properties(${name} PROPERTIES
            VERSION ${PROJECT_VERSION}
            SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
            INSTALL_RPATH "$ORIGIN")
        target_link_libraries(${name} PUBLIC ${arg_LIBRARIES})
        if(NOT arg_C_HEADERS_ONLY)
            target_compile_features(${name} PUBLIC cxx_std_20)
        endif()

        list(JOIN arg_MARKED "|" marked)
        add_library(${name}_marked STATIC EXCLUDE_FROM_ALL ${arg_MARKED}
            "$<FILTER:$<TARGET_OBJECTS:${name}>,EXCLUDE,[.]dir/([.]/)?(${marked})[.]o$>")
        # Public, because a mark may stand in a template of a header.
        target_compile_definitions(${name}_marked PUBLIC RMEM_MARKS=1)
        list(TRANSFORM arg_LIBRARIES APPEND _marked)
        target_link_libraries(${name}_marked PUBLIC ${arg_LIBRARIES})

        foreach(variant IN ITEMS ${name} ${name}_marked)
            target_compile_definitions(${variant} PRIVATE ${define})
            target_link_libraries(${variant} PRIVATE
                $<BUILD_INTERFACE:rmem_flags> ${arg_PRIVATE_LIBRARIES})
        endforeach()
        use_common_headers(${name})
        # It is for tests that kill, not for speed.
        target_compile_options(${name}_marked PRIVATE -O0)
        set(scope PUBLIC)
    else()
        add_library(${name} INTERFACE)
        target_link_libraries(${name} INTERFACE ${arg_LIBRARIES})
        add_library(${name}_marked INTERFACE)
        list(TRANSFORM arg_LIBRARIES APPEND _marked)
        target_link_libraries(${name}_marked INTERFACE ${arg_LIBRARIES})
        set(scope INTERFACE)
    endif()

    foreach(variant IN ITEMS ${name} ${name}_marked)
        target_include_directories(${variant} ${scope}
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()
    add_library(rmem::${name} ALIAS ${name})

    if(arg_INTERNAL)
        return()
    endif()
    install(TARGETS ${name} EXPORT rmemTargets)
    set_property(GLOBAL APPEND PROPERTY rmem_components ${name})
    set(patterns PATTERN "*.h")
    if(NOT arg_C_HEADERS_ONLY)
        list(APPEND patterns PATTERN "*.hpp")
    endif()
    install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${name}
        FILES_MATCHING ${patterns})
endfunction()
