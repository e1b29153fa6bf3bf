#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# A program is killed while it writes, again and again, at a node that `rmem node` keeps: the memory
# of its node is soon that of the other one. For longer runs the first argument says how many times
# in each way.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

kills=${1:-8}
rmem=$RMEM_BUILD_DIR/tools/rmem
program=$work/killed-writer
"${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -I"$RMEM_SOURCE_DIR" -o "$program" \
    "$RMEM_SOURCE_DIR/tests/support/programs/killed_writer.c" \
    -L"$RMEM_BUILD_DIR/rmem" -lrmem -Wl,-rpath,"$RMEM_BUILD_DIR/rmem"

ranks=(1 guest)
keepers=()
writer=
at_end() {
    if [[ $writer ]]; then kill -KILL "$writer" || true; fi
    for keeper in "${keepers[@]}"; do
        if kill "$keeper"; then wait "$keeper" || true; fi
    done
}

bank() {
    local of=(--node "$1")
    if [[ $link == udp ]]; then of=() && set -- "$1" "@$1"; fi
    "$rmem" dump "$RMEM_RING${2:-}" "${of[@]}" --format raw
}
are_equal() { cmp -s <(bank 0) <(bank 1); }

export RMEM_RING=killed-$$ RMEM_NODES=2 RMEM_RANKS=2 RMEM_SIZE=16384 RMEM_AWAIT=none
export RMEM_INTERFACE=lo
for case in ring/none ring/gt200 udp/none; do
    export RMEM_LINK=${case%/*} RMEM_TIMING=${case#*/}
    link=$RMEM_LINK
    keepers=()
    for node in 0 1; do
        "$rmem" node --quiet --node "$node" &
        keepers+=($!)
    done
    are_there() { "$rmem" peek "$RMEM_RING$1" 0 >"$work/peeked" 2>&1; }
    if [[ $link == udp ]]; then
        await "node 1 is there" are_there @1
        await "node 0 is there" are_there @0
    else
        kept() { [[ $("$rmem" info "$RMEM_RING" | grep -c "kept by process") == 2 ]]; }
        await "both are kept" kept
    fi
    for way in words blocks bytes stores/exact stores/scan; do
        if [[ $way == stores/exact && $(uname -m) != x86_64 ]]; then continue; fi
        differed=0
        for ((kill = 0; kill < kills; ++kill)); do
            RMEM_STORES=${way#*/} RMEM_NODE=1 RMEM_RANK=${ranks[kill % 2]} \
                "$program" "${way%/*}" 2>"$output" &
            writer=$!
            sleep "0.0$((RANDOM % 50 + 30))"
            kill -KILL "$writer" || fail "it had ended: $(cat "$output")"
            wait "$writer" 2>>"$work/said" || true
            writer=
            for ((look = 0; look < 20; ++look)); do
                if are_equal; then continue 2; fi
                sleep 0.1
            done
            cmp <(bank 0) <(bank 1) || true
            ((++differed))
        done
        echo "$case, $way: $differed of $kills differ"
        ((differed == 0)) || fail "$case, $way: $differed of $kills differ"
    done
    for keeper in "${keepers[@]}"; do kill "$keeper" && wait "$keeper"; done
    keepers=()
done
