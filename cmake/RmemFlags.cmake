# SPDX-License-Identifier: Apache-2.0
# How everything here is compiled. Targets link `rmem_flags` privately, so users inherit nothing.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Half of the time that a source takes is its headers, and sources of one folder share them. A build
# without it tells where a source does not include what it uses.
set(CMAKE_UNITY_BUILD ${RMEM_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)

if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
    # To collect its garbage takes an eighth to a sixth of its time.
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)
    find_program(CCACHE ccache)
    if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
        # What it took is held by tests/budget.toml.
        set(CMAKE_C_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/scripts/lib/timed)
        if(CCACHE)
            list(APPEND CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
        endif()
        set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
    endif()
endif()

# A newer compiler's new warning is no reason for a user's build to fail.
set(werror OFF)
if(RMEM_WERROR
        AND "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
            MATCHES "^(GNU 12|Clang 14)\\.")
    set(werror ON)
endif()

add_library(rmem_flags INTERFACE)
target_compile_options(rmem_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion
    -Wcast-align -Wcast-qual -Wformat=2 -Wimplicit-fallthrough -Wundef -Wvla
    "$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Wold-style-cast>"
    "$<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual;-Wextra-semi>"
    $<$<BOOL:${werror}>:-Werror>
    # A call between the libraries goes straight through the GOT, and one inside a library is
    # direct.
    -fno-plt -fno-semantic-interposition
    # It takes a source that is compiled with others for a header of theirs.
    $<$<AND:$<BOOL:${RMEM_UNITY}>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-subobject-linkage>)

# Invariants run (rmem/base/check.hpp).
if(RMEM_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_definitions(rmem_flags INTERFACE RMEM_CHECKED)
endif()

if(RMEM_SANITIZE)
    # Everywhere, because a half-instrumented program reports what is not there.
    add_compile_options(
        -fsanitize=${RMEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${RMEM_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # The instrumentation makes GCC 12 see uninitialized members in the standard library.
        add_compile_options(-Wno-maybe-uninitialized)
    endif()
endif()
