#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
#
# Programs as a lab has them for its RFM2g cards: a game that finds each broken word, events to and
# fro, a measurement of speed, a monitor.
set -euo pipefail
source "$RMEM_SOURCE_DIR/tests/support/card_programs.sh"

for program in integrity ping_pong throughput monitor; do
    compile rfm2g "$program" rfm2g_client.c card_client.c
done

for link in direct ring; do
    echo "--- $link"
    keep_nodes "$link" 3
    succeed "integrity 0 3 28" "integrity 1 3 28" "integrity 2 3 28"
    grep -x "member 0 of 3: 28 rounds, 84 blocks of 1024 bytes, none broken" "$work/0"
    # One of them breaks a word, and everybody says so.
    at_once "integrity 0 3 7" "integrity 1 3 7 30" "integrity 2 3 7"
    [[ ${codes[*]} == "1 1 1" ]]
    grep -hx "round 30: word 17 of member 1 is 0x01001e31 in place of 0x01001e11" "$work/"[02]
    grep -xE "member [02] has found a broken word" "$work/1"
    for how in wait callback; do
        succeed "ping_pong 0 1 200 $how" "ping_pong 1 0 200 $how"
        grep -E "^(waiting|callback): 200 rounds, " "$work/0"
    done
    succeed "throughput 0 2"
    [[ $(grep -cE ' [0-9.]+ MB/s$' "$work/0") -eq 30 ]]
    succeed "monitor 1"
    grep -E "^unit 1: .* node 1, board 0x65, " "$work/0"
    grep -x "memory of 2097152 bytes from 0 on, window of 2097152" "$work/0"
    grep -x "the ring is closed, own data has come round" "$work/0"
    grep -xE "rfm2g_nid +0x01" "$work/0"
    [[ $(grep -c "^rfm" "$work/0") -eq 19 && $(grep -c "^event" "$work/0") -eq 12 ]]
    stop_nodes
done

echo "--- udp, where a datagram of twenty is lost"
RMEM_FAULTS='drop:share=5%' keep_nodes udp 3
succeed "integrity 0 3 28" "integrity 1 3 28" "integrity 2 3 28"
cat "$work/0"
"$RMEM_BUILD_DIR/tools/rmem" info "cards-$$-$rings@0" | grep " faults_injected "
