#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full plain
# A program whose stores are captured, in a debugger: breakpoints at stores and behind them, steps
# over them, and signals as the debugger has them by default. What it stores is what it stores
# alone.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

need gdb
if [[ $(uname -m) != x86_64 || ! -e $RMEM_BUILD_DIR/rmem/librmem.so ]]; then
    skip "stores are captured exactly on x86-64 alone, here from shared libraries"
fi

cat >"$work/rig.c" <<'END'
#include <rmem/rmem.h>
#include <stdio.h>
#include <string.h>

struct map {
    unsigned word;
    double real;
    long double longest;
    char text[64];
    unsigned last;
};

int main(void) {
    rmem_node* node;
    void* memory;
    if (rmem_open(&node) < 0 || rmem_stores(node, RMEM_STORES_DEFAULT, &memory) < 0) {
        fprintf(stderr, "%s\n", rmem_last_error());
        return 1;
    }
    struct map* map = memory;
    map->word = 7; /* one */
    map->real = 2.5; /* two */
    map->longest = 3.25L; /* three */
    memcpy(map->text, "as it was", 10); /* four */
    __atomic_fetch_add(&map->word, 1, __ATOMIC_SEQ_CST); /* five */
    map->last = 9; /* six */
    rmem_flush(node, 1000000000);
    const struct map* bank = rmem_bank(node);
    printf("%u %g %Lg %s %u\n", bank->word, bank->real, bank->longest, bank->text, bank->last);
    return rmem_close(node) < 0;
}
END
"${CC:-cc}" -g -O1 -I"$RMEM_SOURCE_DIR" -o "$work/rig" "$work/rig.c" \
    -L"$RMEM_BUILD_DIR/rmem" -lrmem -Wl,-rpath,"$RMEM_BUILD_DIR/rmem"
line_of() {
    grep -n "/\* $1 \*/" "$work/rig.c" | cut -d: -f1
}

# debug <what to look for> <command of gdb>...
debug() {
    local wanted=$1 options=(-ex "handle SIGSEGV nostop noprint pass")
    shift
    for command in "$@"; do options+=(-ex "$command"); done
    RMEM_RING=dbg-$$ RMEM_LINK=ring RMEM_NODES=1 RMEM_NODE=0 RMEM_RANK=0 timeout 100 \
        gdb -q -nx -batch "${options[@]}" "$work/rig" >"$work/said" 2>&1 ||
        fail "gdb: $(cat "$work/said")"
    grep -q "^8 2.5 3.25 as it was 9$" "$work/said" || fail "$(cat "$work/said")"
    grep -q "exited normally" "$work/said" || fail "$(cat "$work/said")"
    if grep -q "SIGTRAP" "$work/said"; then fail "a trap: $(cat "$work/said")"; fi
    [[ $(grep -cE "$wanted" "$work/said") -gt 0 ]] || fail "no '$wanted': $(cat "$work/said")"
}

echo "--- captured exactly: at each store a breakpoint, which the next ones meet, too"
breakpoints=()
for name in one two three four five six; do breakpoints+=("break $(line_of $name)"); done
export RMEM_STORES=exact
debug "Breakpoint 6, main" "${breakpoints[@]}" run continue continue continue continue continue \
    continue
grep -q "RMEM_STORES=scan to step" "$work/said" || fail "no word of steps: $(cat "$work/said")"

echo "--- captured exactly: a step goes on to the next breakpoint, and loses nothing"
debug "Breakpoint 2, main" "break $(line_of one)" "break $(line_of six)" run next continue
debug "exited normally" "break $(line_of three)" run stepi stepi

echo "--- as it is by default: each step ends behind its store"
unset RMEM_STORES
debug "map->last = 9" "break $(line_of one)" run next next next next next next continue
debug "map->real = 2.5" "break $(line_of one)" run stepi stepi continue
