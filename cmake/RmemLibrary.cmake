# SPDX-License-Identifier: Apache-2.0

# rmem_library(<name> [INTERNAL] [WITHOUT <folder>] HEADERS <header>...
#     MARKED <source>... [LIBRARIES <library>...] [PRIVATE_LIBRARIES <library>...])
#
# Makes the library <name> (alias rmem::<name>), static with BUILD_SHARED_LIBS=OFF, of the sources
# in the current folder and below it, WITHOUT one of these, and <name>_marked, a static library with
# the kill marks compiled in, for the tests that stop a process at a named place. MARKED are the
# sources that include rmem/base/marks.hpp, perhaps by other headers; of the others both have the
# same objects. MARKED ALL, where these are most, lets the sources of each be compiled together.
# LIBRARIES are other libraries of this project that its headers need. HEADERS are what users
# include, and what these include: they are installed below the folder's name, and no others. The
# names that a shared library gives are in the folder's exports.map. INTERNAL: static, not
# installed, and built only when another part is made of it.
function(rmem_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg
        "INTERNAL" "WITHOUT" "HEADERS;MARKED;LIBRARIES;PRIVATE_LIBRARIES")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
    if(arg_WITHOUT)
        list(FILTER sources EXCLUDE REGEX "/${name}/${arg_WITHOUT}[/.]")
    endif()
    configure_file(exports.map exports.map @ONLY)

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
        get_target_property(type ${name} TYPE)
        if(type STREQUAL "SHARED_LIBRARY")
            set(map ${CMAKE_CURRENT_BINARY_DIR}/exports.map)
            target_link_options(${name} PRIVATE -Wl,--version-script=${map})
            set_target_properties(${name} PROPERTIES LINK_DEPENDS ${map})
        endif()
        target_link_libraries(${name} PUBLIC ${arg_LIBRARIES})
        if(arg_HEADERS MATCHES "[.]hpp")
            target_compile_features(${name} PUBLIC cxx_std_20)
        endif()

        if(arg_MARKED STREQUAL "ALL")
            set(marked ${sources})
        else()
            set_source_files_properties(${arg_MARKED} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
            list(JOIN arg_MARKED "|" marked)
            set(marked ${arg_MARKED}
                "$<FILTER:$<TARGET_OBJECTS:${name}>,EXCLUDE,[.]dir/([.]/)?(${marked})[.]o$>")
        endif()
        add_library(${name}_marked STATIC EXCLUDE_FROM_ALL ${marked})
        # Public, because a mark may stand in a template of a header.
        target_compile_definitions(${name}_marked PUBLIC RMEM_MARKS=1)
        list(TRANSFORM arg_LIBRARIES APPEND _marked)
        target_link_libraries(${name}_marked PUBLIC ${arg_LIBRARIES})

        foreach(variant IN ITEMS ${name} ${name}_marked)
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
    set_property(GLOBAL APPEND PROPERTY rmem_components ${name})
    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR PARENT_PATH root)
    target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${arg_HEADERS})
    install(TARGETS ${name} EXPORT rmemTargets FILE_SET HEADERS)
endfunction()
