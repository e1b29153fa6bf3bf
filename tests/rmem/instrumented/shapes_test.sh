#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full plain
# Whatever the compiler makes of a store, the other bank has it: one corpus of stores, as hardened,
# optimised and whole programs are compiled. (stores_test.sh has what breaks first.)
# shellcheck source=tests/support/rmem_cc.sh
source "$RMEM_SOURCE_DIR/tests/support/rmem_cc.sh"

for compiler in gcc clang; do
    compare_banks $compiler -O0
    compare_banks $compiler -O1 -D_FORTIFY_SOURCE=1
    compare_banks $compiler -O2
    compare_banks $compiler -O2 -D_FORTIFY_SOURCE=3
    compare_banks $compiler -O3 -march=native -D_FORTIFY_SOURCE=2
    compare_banks $compiler -O2 -flto
    compare_banks $compiler -Os
done
