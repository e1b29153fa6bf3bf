# SPDX-License-Identifier: Apache-2.0

# rmem_capture_stores(<target>...): plain stores of the targets' own sources into the memory of
# rmem_stores() travel, as rmem-cc(1) does it. For programs; a library's targets are compiled so,
# too, and the program that uses them is linked so.
function(rmem_capture_stores)
    foreach(target IN LISTS ARGN)
        target_compile_options(${target} PRIVATE
            -fsanitize=thread
            "$<$<COMPILE_LANG_AND_ID:C,GNU>:SHELL:--param tsan-distinguish-volatile=1>"
            "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param tsan-distinguish-volatile=1>"
            "$<$<COMPILE_LANG_AND_ID:C,Clang>:SHELL:-mllvm -tsan-distinguish-volatile>"
            "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-mllvm -tsan-distinguish-volatile>"
            -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset
            -fno-builtin-strcpy -fno-builtin-strncpy -fno-builtin-strcat)
        target_link_libraries(${target} PRIVATE rmem::rmem_instrumented)
    endforeach()
endfunction()
