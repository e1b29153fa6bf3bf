# SPDX-License-Identifier: Apache-2.0

# rmem_capture_stores(<target>...): plain stores of the targets' own sources into the memory of
# rmem_stores() travel, as rmem-cc(1) does it. For programs; a library's targets are compiled so,
# too, and the program that uses them is linked so.
function(rmem_capture_stores)
    foreach(target IN LISTS ARGN)
        target_link_libraries(${target} PRIVATE rmem::rmem_instrumented)
    endforeach()
endfunction()
