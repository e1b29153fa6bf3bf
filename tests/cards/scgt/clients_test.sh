#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
#
# Programs as a lab has them for its SCRAMNet GT cards, each between two nodes, on each link of a
# host: a monitor, interrupts to and fro, frames that must come whole, and a measurement of speed.
set -euo pipefail
source "$RMEM_SOURCE_DIR/tests/support/card_programs.sh"

compile scgt monitor
compile scgt throughput
compile scgt ping_pong scgt_client.c
compile scgt integrity scgt_client.c

for link in direct ring udp; do
    echo "--- $link"
    keep_nodes "$link" 2
    succeed "ping_pong 0 1 500" "ping_pong 1 0 500"
    [[ $(cat "$work/0") == "500 rounds" ]]
    stop_nodes
    keep_nodes "$link" 2
    succeed "integrity 0 1 200" "integrity 1 0 200"
    [[ $(cat "$work/0") == "200 frames" ]]
    succeed "throughput 0 131072"
    [[ $(grep -c MB/s "$work/0") -eq 12 ]]
    succeed "monitor 1"
    grep "^unit 1: node 1 of 2, 2097152 bytes," "$work/0"
    [[ $(grep -cE '^[A-Z0-9_]+ +0x' "$work/0") -eq 28 ]]
    # The own node comes last; whether the other's programs have ended may not be known yet.
    grep -qxE "[12] upstream: node 1 behind node [01], link up" "$work/0"
    grep -qE '^nStats ' "$work/0"
    stop_nodes
done
