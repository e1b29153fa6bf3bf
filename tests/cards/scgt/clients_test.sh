#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
#
# Programs as a lab has them for its SCRAMNet GT cards, in C and by scgtapi.h alone, each between
# two nodes that `rmem node` keeps, on each link of a host: a monitor, interrupts to and fro, frames
# that must come whole, and a measurement of speed.
set -euo pipefail

work=$(mktemp -d)
nodes=()
stop_nodes() {
    for node in "${nodes[@]}"; do
        kill "$node" || true
        wait "$node" || true
    done
    nodes=()
}
trap 'stop_nodes; rm -rf "$work"' EXIT
fail() {
    echo "$*"
    exit 1
}

programs=$RMEM_SOURCE_DIR/tests/support/programs
scgt=$RMEM_BUILD_DIR/cards/scgt
compile() { # <name> <further source>...
    "${CC:-cc}" -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -I"$RMEM_SOURCE_DIR" \
        -I"$RMEM_SOURCE_DIR/cards/scgt" -o "$work/$1" "$programs/scgt_$1.c" "${@:2}" \
        -L"$scgt" -lscgt -Wl,-rpath,"$scgt" -Wl,-rpath-link,"$RMEM_BUILD_DIR/rmem"
}
compile monitor
compile throughput
compile ping_pong "$programs/scgt_client.c"
compile integrity "$programs/scgt_client.c"

export XDG_RUNTIME_DIR=$work RMEM_SIZE=1M RMEM_INTERFACE=lo
export RMEM_GROUP=239.1.2.3:$((10000 + $$ % 20000))

# keep_nodes <link>: a ring of its own, each node with two ranks.
keep_nodes() {
    rings=$((rings + 1))
    for unit in 0 1; do
        "$RMEM_BUILD_DIR/tools/rmem" node --quiet --unit "$unit" --ring "scgt-$$-$rings" \
            --link "$1" --nodes 2 --ranks 4 --node "$unit" &
        nodes+=($!)
    done
    for unit in 0 1; do
        for _ in $(seq 200); do
            [[ -s $work/rmem/unit-$unit ]] && break
            sleep 0.05
        done
    done
}
# both <program> <count>: at both units, each with the other as its peer.
both() {
    timeout -k 5 90 "$work/$1" 1 0 "$2" >"$work/second" &
    local second=$!
    timeout -k 5 90 "$work/$1" 0 1 "$2" >"$work/first" || fail "$1: $(cat "$work/first")"
    wait "$second" || fail "$1 of unit 1: $(cat "$work/second")"
    cat "$work/first"
}

rings=0
for link in direct ring udp; do
    echo "--- $link"
    keep_nodes "$link"
    [[ $(both ping_pong 500) == "500 rounds" ]]
    stop_nodes
    keep_nodes "$link"
    [[ $(both integrity 200) == "200 frames" ]]
    timeout -k 5 90 "$work/throughput" 0 131072 >"$work/speeds"
    [[ $(grep -c MB/s "$work/speeds") -eq 12 ]]
    timeout -k 5 90 "$work/monitor" 1 >"$work/state"
    grep "^unit 1: node 1 of 2, 1048576 bytes," "$work/state"
    [[ $(grep -cE '^[A-Z0-9_]+ +0x' "$work/state") -eq 28 ]]
    grep -qx "1 upstream: node 1 behind node 1, link up" "$work/state"
    grep -qE '^nStats ' "$work/state"
    stop_nodes
done
