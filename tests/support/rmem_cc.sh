# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests of rmem-cc: source it first. It skips where the build has none of it.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

cc=$RMEM_BUILD_DIR/rmem/rmem-cc
rmem=$RMEM_BUILD_DIR/tools/rmem
programs=$RMEM_SOURCE_DIR/tests/support/programs
if [[ ! -x $cc || ! -x $rmem || ! -e $RMEM_BUILD_DIR/rmem/librmem_instrumented.a ]]; then
    skip "this build has no rmem command, or no shared libraries"
fi
unset RMEM_CC RMEM_CXX

# take_compiler <gcc or clang>: or fails where it is missing.
take_compiler() {
    command -v "$1" >/dev/null || return
    export RMEM_CC=$1 RMEM_CXX=${1/gcc/g++}
    RMEM_CXX=${RMEM_CXX/%clang/clang++}
}

# compare_banks <compiler> <option>...: every shape of store in C and C++ comes to the other bank.
compare_banks() {
    local compiler=$1 said=$work/said
    shift
    take_compiler "$compiler" || { echo "skipped: no $compiler" && return; }
    echo "--- $compiler $*"
    (
        cd "$work"
        "$cc" -w -std=gnu11 "$@" -c "$programs/store_shapes.c" "$programs/store_shapes_main.c"
        "${cc/%cc/c++}" -w -std=c++20 "$@" -c -o plus.o "$programs/store_shapes.cpp"
        "${cc/%cc/c++}" "$@" -o shapes store_shapes.o store_shapes_main.o plus.o
    ) >"$said" 2>&1 || fail "$(cat "$said")"
    "$rmem" run -n 2 --link ring --timing none --size 2M -- "$work/shapes" >"$said" 2>&1 ||
        fail "$(cat "$said")"
    grep -q "shapes: all came" "$said" || fail "$(cat "$said")"
}
