#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# Ranks and daemons are killed at any moment, and started again, while all exchange messages: on
# loop-back, where datagrams are lost, come twice and come late, between hosts of the lab, and over
# link fabric.
#
# RMEM_RESTART_KILLS, RMEM_RESTART_SEED: how often, and other choices.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

readonly seed=${RMEM_RESTART_SEED:-1} kills=${RMEM_RESTART_KILLS:-8}

deaths() {
    echo "--- on link $1"
    ring_restarts --link "$1" --seed "$seed" --ranks 3 --kills "$kills"
    ring_restarts --link "$1" --seed "$seed" --nodes 3 --ranks 6 --daemons --kills "$kills"
}

libraries=$(ldconfig -p)
links=(udp)
[[ $libraries != *libfabric.so.1* ]] || links+=(fabric)

if ((EUID != 0)) && [[ ${links[-1]} == fabric ]]; then
    begin_hosts here
    deaths fabric
fi
begin_hosts loop-back 3
RMEM_FAULTS='seed=5; drop:share=1%; duplicate:share=2%,by=300us; hold:by=200us,share=2%' deaths udp
begin_hosts lab 3
for link in "${links[@]}"; do deaths "$link"; done
[[ ${links[-1]} == fabric ]] || skip "link udp has run, but there is no libfabric"
