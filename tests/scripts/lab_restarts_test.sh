#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# Four nodes on hosts of the lab write, one of them is killed and started again, again and again;
# at the end all banks are equal and nothing is lost, on link udp and on link fabric.
#
# RMEM_RESTART_WRITES, RMEM_RESTART_KILLS: how much each writes, and how often one is killed.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

readonly writes=${RMEM_RESTART_WRITES:-200000} kills=${RMEM_RESTART_KILLS:-3}
readonly seconds=$((kills * 3 / 2 + 1)) # nobody is to be ready before the last one is killed
place=lab
need_namespaces ip nft

begin_writer() {
    (on "$1" "$RMEM_BUILD_DIR/tests/lab-writers" "$writes" "$seconds") >>"$output" 2>&1 &
}

restart_while_all_write() {
    local node kill writers=()
    : >"$output"
    scripts/lab up 4 --name "$name" >>"$output" 2>&1 || fail "a lab of 4 hosts"
    for node in 0 1 2 3; do
        begin_writer "$node"
        writers[node]=$!
    done
    for ((kill = 0; kill < kills; ++kill)); do
        sleep "0.$((RANDOM % 9 + 1))"
        kill -KILL "${writers[2]}" 2>/dev/null || break
        wait "${writers[2]}" 2>/dev/null || true
        begin_writer 2
        writers[2]=$!
    done
    for node in 0 1 2 3; do
        wait "${writers[node]}" || fail "node $node on ${RMEM_LINK:-udp}"
    done
    for node in 0 1 2 3; do
        grep -q "^node $node: all equal$" "$output" || fail "node $node has not looked"
    done
    echo "${RMEM_LINK:-udp}: 4 nodes wrote $writes words each, one was killed $kill times"
    scripts/lab down --name "$name"
}

restart_while_all_write
libraries=$(ldconfig -p)
[[ $libraries == *libfabric.so.1* ]] || skip "there is no libfabric"
RMEM_LINK=fabric restart_while_all_write
