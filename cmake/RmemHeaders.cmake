# SPDX-License-Identifier: Apache-2.0

# What nearly every source of the libraries includes, parsed once: half of the time that such a
# source takes is its headers.
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp CONTENT "")
add_library(rmem_common_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp)
target_link_libraries(rmem_common_headers PRIVATE rmem_flags fmt::fmt Threads::Threads)
target_precompile_headers(rmem_common_headers PRIVATE
    <fmt/format.h> <algorithm> <array> <atomic> <deque> <functional> <map> <memory> <mutex>
    <optional> <span> <string> <vector>)

# use_common_headers(<target>...): for targets that are compiled as the libraries are. A source
# still includes what it uses (tests/lint/includes.py).
function(use_common_headers)
    foreach(target IN LISTS ARGN)
        target_precompile_headers(${target} REUSE_FROM rmem_common_headers)
    endforeach()
endfunction()
