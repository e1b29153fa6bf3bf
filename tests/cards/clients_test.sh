#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
#
# Programs as a lab has them for its cards, of each interface: a game that finds each broken word,
# interrupts to and fro, a measurement of speed, a monitor.
source "$RMEM_SOURCE_DIR/tests/support/card_programs.sh"

# found <times> <pattern>: in what the first program has printed.
found() { [[ $(grep -cE "$2" "$work/0") -eq $1 ]] || fail "not $1 of '$2' in: $(cat "$work/0")"; }
play() {
    succeed "integrity 0 3 28" "integrity 1 3 28" "integrity 2 3 28"
    found 1 "^member 0 of 3: 28 rounds, 84 blocks of 1024 bytes, none broken$"
}

monitor_rfm2g() {
    found 1 "^unit 1: .* node 1, board 0x65, "
    found 1 "^memory of 2097152 bytes from 0 on, window of 2097152$"
    found 1 "^the ring is closed, own data has come round$"
    found 1 "^rfm2g_nid +0x01$"
    found 19 "^rfm"
    found 12 "^event"
}
monitor_scramnet_plus() {
    found 1 "^node 1, 3 nodes, 2097152 bytes, a card of kind 1, byte order 0$"
    found 16 "^CSR[0-9]+ +0x"
    found 6 "^counter of"
    found 1 "^0 ACRs are set$"
}

monitor_scgt() {
    found 1 "^unit 1: node 1 of 3, 2097152 bytes,"
    found 28 '^[A-Z0-9_]+ +0x'
    # The own node comes last; whether the others' programs have ended may not be known yet.
    found 1 "^[123] upstream: node 1 behind node [012], link up$"
    found 1 '^nStats '
}

# meet <members> <rounds>
meet() {
    local members=()
    for member in $(seq 0 $(($1 - 1))); do members+=("bytes $member $1 $2"); done
    succeed "${members[@]}"
    found 1 "^member 0 of $1: met $2 times$"
}

# with_client <interface> <measurements> <way of waiting>...
with_client() {
    compile "$1"
    for link in direct ring; do
        echo "--- $1, $link"
        keep_nodes "$link" 3
        meet 3 300
        play
        # One of them breaks a word, and everybody says so.
        at_once "integrity 0 3 7" "integrity 1 3 7 30" "integrity 2 3 7"
        [[ ${codes[*]} == "1 1 1" ]]
        grep -hx "round 30: word 17 of member 1 is 0x01001e31 in place of 0x01001e11" "$work/"[02]
        grep -xE "member [02] has found a broken word" "$work/1"
        for how in "${@:3}"; do
            succeed "ping_pong 0 1 200 $how" "ping_pong 1 0 200 $how"
            found 1 "^$how: 200 rounds, "
        done
        succeed "throughput 0 2"
        found "$2" ' [0-9.]+ MB/s$'
        succeed "monitor 1"
        "monitor_$1"
        stop_nodes
    done
    echo "--- $1, udp, where a datagram of twenty is lost"
    RMEM_FAULTS='drop:share=5%' keep_nodes udp 3
    meet 3 30
    play
    "$RMEM_BUILD_DIR/tools/rmem" info "cards-$$-$rings@0" | grep " faults_injected "
    stop_nodes
}
with_client rfm2g 30 wait callback
with_client scramnet_plus 22 wait look
with_client scgt 22 wait
echo "--- scgt, ring, its profile"
RMEM_TIMING=gt200 keep_nodes ring 3
meet 3 100
stop_nodes
echo "--- scgt, ring, eight nodes on its wire, more than there are processors"
RMEM_TIMING=gt200 keep_nodes ring 8
meet 8 30
