#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check plain
# Programs that rmem-cc has compiled: every kind of store travels, in program order, from several
# threads, on every link; and rmem-cc takes the options that build systems give.
set -euo pipefail

cc=$RMEM_BUILD_DIR/rmem/rmem-cc
rmem=$RMEM_BUILD_DIR/tools/rmem
if [[ ! -x $cc || ! -x $rmem || ! -e $RMEM_BUILD_DIR/rmem/librmem_instrumented.a ]]; then
    echo "skipped: this build has no rmem command, or no shared libraries"
    exit 77
fi
source=$RMEM_SOURCE_DIR/tests/support/programs/instrumented_stores.c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAILED: $*"
    exit 1
}

for compiler in gcc clang; do
    if ! command -v $compiler >/dev/null; then
        echo "skipped: no $compiler"
        continue
    fi
    export RMEM_CC=$compiler RMEM_CXX=${compiler/gcc/g++}
    RMEM_CXX=${RMEM_CXX/%clang/clang++}
    for level in -O0 -O3; do
        "$cc" -std=c11 -Wall -Wextra -Werror $level -o "$work/stores" "$source"
        for link in direct ring udp; do
            echo "--- $compiler $level, link $link"
            "$rmem" run -n 2 --link "$link" --timing none -- "$work/stores" 5000 \
                >"$work/said" 2>&1 || fail "$(cat "$work/said")"
            [[ $(grep -c "all came, in order" "$work/said") -eq 2 ]] || fail "$(cat "$work/said")"
        done
        [[ $(grep -c "captured" "$work/said") -eq 2 ]] || fail "nothing was captured on udp"
    done

    echo "--- $compiler, as build systems call it"
    (
        cd "$work"
        "$cc" -std=c11 -O1 -c -o stores.o "$source"
        "$cc" -o linked stores.o
        "$cc" -std=c11 -O1 -MD -MF stores.d -c -o "with space.o" "$source"
        "$cc" -o linked-too "with space.o" -lm
        "$cc" -E "$source" >/dev/null
        printf '#include <vector>\nint main() { return std::vector<int>(1)[0]; }\n' >plus.cpp
        "$(dirname "$cc")/rmem-c++" -std=c++20 -o plus plus.cpp && ./plus
        echo 'int main(void) { return ' >broken.c
        if "$cc" -o broken broken.c 2>/dev/null; then exit 1; fi
    ) || fail "rmem-cc does not take these"
    "$rmem" run -n 2 --link ring -- "$work/linked" 100 >"$work/said" || fail "$(cat "$work/said")"
done

echo "--- a program without hooks"
"${CC:-cc}" -std=c11 -I"$RMEM_SOURCE_DIR" -o "$work/bare" "$source" \
    -L"$RMEM_BUILD_DIR/rmem" -lrmem -Wl,-rpath,"$RMEM_BUILD_DIR/rmem" -pthread
if "$rmem" run -n 1 --link ring -- "$work/bare" 1 >"$work/said" 2>&1; then fail "not refused"; fi
grep -q "has no hooks at its stores" "$work/said" || fail "$(cat "$work/said")"
"$cc" --help >"$work/help"
grep -q "Examples:" "$work/help" || fail "no help"
