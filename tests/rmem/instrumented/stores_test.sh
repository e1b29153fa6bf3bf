#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check plain
# Programs that rmem-cc has compiled: every kind of store travels, in program order, from several
# threads, on every link.
# shellcheck source=tests/support/rmem_cc.sh
source "$RMEM_SOURCE_DIR/tests/support/rmem_cc.sh"
source=$programs/instrumented_stores.c

for compiler in gcc clang; do
    take_compiler $compiler || { echo "skipped: no $compiler" && continue; }
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
done

# The two that were the first to lose stores.
compare_banks gcc -O2 -D_FORTIFY_SOURCE=2
compare_banks clang -O3 -march=native

echo "--- a program without hooks"
"${CC:-cc}" -std=c11 -I"$RMEM_SOURCE_DIR" -o "$work/bare" "$source" \
    -L"$RMEM_BUILD_DIR/rmem" -lrmem -Wl,-rpath,"$RMEM_BUILD_DIR/rmem" -pthread
if "$rmem" run -n 1 --link ring -- "$work/bare" 1 >"$work/said" 2>&1; then fail "not refused"; fi
grep -q "has no hooks at its stores" "$work/said" || fail "$(cat "$work/said")"
"$cc" --help >"$work/help"
grep -q "Examples:" "$work/help" || fail "no help"
