#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check plain
# rmem-cc is a compiler: builds call it as they call one, and what comes out has hooks.
# shellcheck source=tests/support/rmem_cc.sh
source "$RMEM_SOURCE_DIR/tests/support/rmem_cc.sh"

cd "$work"
export PATH=$RMEM_BUILD_DIR/rmem:$PATH
cat >rig.c <<'END'
#include <rmem/rmem.h>
#include "rig.h"
int twice(int);
int main(void) { return twice(ONE) - 2; }
END
echo '#define ONE 1' >rig.h
echo 'int twice(int x) { return 2 * x; }' >twice.c
cat >twice.s <<'END'
    .globl twice
twice:
    ret
    .section .note.GNU-stack,"",@progbits
END
(echo '#define TWICE twice' && sed 's/twice/TWICE/' twice.s) >upper.S
# shellcheck disable=SC2016 # make's own variables
printf 'rig: rig.c twice.c\n\t$(CC) $(CFLAGS) -o $@ $^\n' >Makefile

# has_hooks <command>...: makes ./rig, which has hooks at its stores, in time.
has_hooks() {
    rm -f rig
    timeout 300 "$@" >said 2>&1 || fail "$*: $(cat said)"
    nm rig >symbols
    grep -q " rmem_hooks$" symbols || fail "$*: no hooks"
    grep -q " U main\| T main" symbols || fail "$*: no main()"
    grep -q "__tsan_func_\|__asan_" symbols || fail "$*: compiled without hooks"
}
# says <pattern> <command>...: with the exit code 1.
says() {
    local pattern=$1 code=0
    shift
    timeout 300 "$@" >said 2>&1 || code=$?
    [[ $code -eq 1 ]] || fail "$*: $code, $(cat said)"
    grep -q -- "$pattern" said || fail "$*: $code, $(cat said)"
}

echo "--- never itself"
unset CC CXX
has_hooks make -B CC=rmem-cc
export CC=rmem-cc
has_hooks make -B
ln -s "$RMEM_BUILD_DIR/rmem/rmem-cc" my-cc
mkdir copy && cp "$RMEM_BUILD_DIR/rmem/rmem-cc" copy
mkdir bin && ln -s "$RMEM_BUILD_DIR/rmem/rmem-cc" bin/cc
printf '#!/bin/sh\nexec rmem-cc "$@"\n' >script && chmod +x script
for CC in ./my-cc copy/rmem-cc "$work/copy/rmem-cc" "gcc -m64" ./script "./script -g" \
    "env rmem-cc"; do
    has_hooks rmem-cc -o rig rig.c twice.c
done
PATH=$work/bin:$PATH has_hooks make -B CC=cc
CC=./script PATH=$work/bin:$PATH has_hooks rmem-cc -o rig rig.c twice.c
unset CC
if command -v ccache >/dev/null; then
    export CCACHE_DIR=$work/ccache
    has_hooks make -B CC="ccache rmem-cc"
    RMEM_CC="ccache gcc" has_hooks rmem-cc -o rig rig.c twice.c
fi
RMEM_CC=nosuch says "no compiler 'nosuch'; let RMEM_CC name one" rmem-cc -o rig rig.c
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(rig C CXX)
add_executable(rig rig.c twice.c)
END
CC=rmem-cc CXX=rmem-c++ timeout 600 cmake -B build . >said 2>&1 || fail "$(cat said)"
has_hooks sh -c 'cmake --build build && cp build/rig .'

for compiler in gcc clang; do
    take_compiler $compiler || { echo "skipped: no $compiler" && continue; }
    echo "--- $compiler, as builds call it"
    has_hooks rmem-cc -O2 -o rig rig.c twice.s upper.S -Wl,-z,muldefs
    has_hooks rmem-cc -x assembler twice.s -x c rig.c -o rig
    has_hooks sh -c 'rmem-cc -x c -I. -o rig - twice.c <rig.c'
    has_hooks rmem-cc -O2 -flto -orig rig.c twice.c
    ./rig || fail "a whole program"
    rm -f ./*.d
    has_hooks rmem-cc -MMD -o rig rig.c twice.c
    "$RMEM_CC" -I"$RMEM_SOURCE_DIR" -MMD -o plain rig.c twice.c -L"$RMEM_BUILD_DIR/rmem" -lrmem
    for made in plain*.d; do [[ -e ${made/plain/rig} ]] || fail "no ${made/plain/rig}"; done
    rmem-cc -MD -MF dep -MT aim -c rig.c
    grep -q "^aim:.*rig.c" dep || fail "-MF, -MT"
    echo '-DTWO="a b" "rig.c"' >inner && echo '@inner twice.c -o rig' >outer
    has_hooks rmem-cc @outer
    rmem-cc -c rig.c twice.c && ar rc libtwice.a twice.o
    has_hooks rmem-cc -o rig rig.o -L. -ltwice
    has_hooks rmem-cc -pie -o rig rig.c libtwice.a
    rmem-cc -r -o whole.o rig.c twice.c
    has_hooks rmem-cc -o rig whole.o
    if command -v ld.gold >/dev/null; then has_hooks rmem-cc -fuse-ld=gold -o rig rig.c twice.c; fi
    for asks in "-E rig.c" "-S -o /dev/null rig.c" "-M rig.c" "-fsyntax-only rig.c" "-### rig.c" \
        --version -dumpmachine -print-prog-name=ld -v; do
        read -ra words <<<"$asks"
        rmem-cc "${words[@]}" >said 2>&1 || fail "$asks: $(cat said)"
        if grep "warning:" said; then fail "$asks: a warning"; fi
    done
    [[ $(rmem-cc -dumpmachine) == "$("$RMEM_CC" -dumpmachine)" ]] || fail "-dumpmachine"
    says "no input files" rmem-cc
    says "nosuch.c" rmem-cc -o rig nosuch.c
    says "link without -static" rmem-cc -static -o rig rig.c twice.c
    says "leave -fsanitize=address out" rmem-cc -fsanitize=address -c rig.c
    echo 'int main(void) { return ' >broken.c
    says "broken.c" rmem-cc -o broken broken.c

    echo "--- $compiler, a library that is loaded late"
    echo 'void store(int* to) { *to = 7; }' >late.c
    rmem-cc -shared -fPIC -o late.so late.c
    cat >host.c <<'END'
#include <dlfcn.h>
#include <rmem/rmem.h>
#include <sched.h>
int main(void) {
    rmem_node* node;
    void* memory;
    if (rmem_open(&node) < 0 || rmem_stores(node, RMEM_STORES_INSTRUMENTED, &memory) < 0) return 2;
    void* late = dlopen("./late.so", RTLD_NOW);
    ((void (*)(void*))dlsym(late, "store"))(memory);
    uint64_t captured = 0;
    rmem_flush(node, RMEM_FOREVER);
    rmem_counter(node, "stores_captured", &captured);
    return dlclose(late) != 0 || rmem_close(node) < 0 || captured != 1;
}
END
    rmem-cc -o host host.c -ldl
    "$rmem" run -n 1 --link ring --timing none -- ./host >said 2>&1 || fail "$(cat said)"
done
