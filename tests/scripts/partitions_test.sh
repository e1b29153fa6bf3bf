#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# The network falls into parts that do not hear each other, also one way, for less and for more than
# it takes to be dead, and heals, while ranks exchange messages: on loop-back, and between hosts of
# the lab.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

partitions() {
    # Shorter than the time after which a node is dead: nobody may lose its node.
    local faults='part:nodes=0,at=300ms,until=800ms; drop:from=1,to=2,at=1s,until=1500ms'
    RMEM_DEAD_TIMEOUT=20s RMEM_FAULTS=$faults \
        ring_restarts --ranks 3 --seconds 2 --no-incarnation-may-end
    # Longer: nodes are given up and come back. Of daemons, which stay the same, so that it happens
    # once.
    RMEM_DEAD_TIMEOUT=500ms RMEM_FAULTS='part:nodes=0,at=1s,until=3s' \
        ring_restarts --nodes 3 --ranks 6 --daemons --seconds 4
    RMEM_DEAD_TIMEOUT=500ms RMEM_FAULTS='drop:from=0,to=2,at=1s,until=3s' \
        ring_restarts --ranks 3 --daemons --seconds 4
}

for place in loop-back lab; do
    begin_hosts $place 3
    partitions
done
