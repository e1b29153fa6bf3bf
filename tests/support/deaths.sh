# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests of ranks that lose each other and come back: source it after lab.sh, and begin_hosts
# with 3.
#
#   deaths       any rank and any daemon is killed, again and again
#   partitions   nodes that do not hear each other, also one way, for less and for more than it
#                takes to be dead
#
# RMEM_RESTART_KILLS, RMEM_RESTART_SEED: how often, and other choices.

readonly seed=${RMEM_RESTART_SEED:-1} kills=${RMEM_RESTART_KILLS:-8}

deaths() {
    local link=(--link "${RMEM_LINK:-udp}")
    ring_restarts "${link[@]}" --seed "$seed" --ranks 3 --kills "$kills"
    ring_restarts "${link[@]}" --seed "$seed" --nodes 3 --ranks 6 --daemons --kills "$kills"
}

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
