#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check plain
#
# Two hosts of a lab, a node on each. The network of the second changes while they run, in each way
# in which a host's can: the nodes find back by themselves, or say that they cannot send.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

need_namespaces ip nft
place=lab
rmem=$RMEM_BUILD_DIR/tools/rmem
scripts/lab up 2 --apart --name "$name" >"$output" 2>&1 || fail "a lab of 2 hosts"
export RMEM_RING=networks RMEM_SIZE=4K
here=rmem-$name-1
count=0

# By the interface's name, by the network, and as the routes say.
begin_nodes() {
    local node
    for node in 0 1; do
        # Opened by the node before anybody looks into it.
        : >"$output.$node"
        (on "$node" env "RMEM_INTERFACE=$1" "$rmem" node --ranks 2) >"$output.$node" 2>&1 &
        nodes[node]=$!
    done
    await "both are in ($1)" both_hear
}

end_nodes() {
    kill "${nodes[@]}"
    wait "${nodes[@]}" || true
    rm -f "$output".[01]
}

# await <what> <command>...: until it succeeds, for as long as a slow host may take.
await() {
    local what=$1 end=$((SECONDS + 60))
    shift
    until "$@" >"$output" 2>&1; do
        ((SECONDS < end)) || {
            cat "$output".[01]
            fail "$what"
        }
        sleep 0.2
    done
}

look() { scripts/lab exec "$1" --name "$name" -- "$rmem" "${@:2}"; }

both_hear() { hears 0 1 && hears 1 0; }
# hears <from> <to>: a word of its own arrives.
hears() {
    look "$1" poke "networks@$1" "$(($1 * 64))" $((++count)) || return 1
    local tries
    for ((tries = 0; tries < 10; ++tries)); do
        [[ $(look "$2" peek "networks@$2" "$(($1 * 64))") != "$count" ]] || return 0
        sleep 0.1
    done
    return 1
}
says() { grep -q "$2" "$output.$1"; }
shows() { [[ $("${@:2}") == *"$1"* ]]; }

change() { ip -n "$here" "$@" || fail "ip $*"; }
give_address() {
    change addr add "$1/24" dev eth0
    change route replace 224.0.0.0/4 dev eth0
}
make_again() {
    ip -n "rmem-$name-net" link del h1
    ip -n "rmem-$name-net" link add h1 type veth peer name eth0 netns "$here"
    ip -n "rmem-$name-net" link set h1 master bridge up
    change link set eth0 up
    give_address "$1"
}

changes() {
    change link set eth0 down
    sleep 0.3
    change link set eth0 up
    change route replace 224.0.0.0/4 dev eth0
    await "down and up ($1)" both_hear
    change addr del 10.0.0.2/24 dev eth0
    sleep 0.3
    give_address 10.0.0.2
    await "the address was taken and given ($1)" both_hear
    change addr del 10.0.0.2/24 dev eth0
    give_address 10.0.0.77
    await "it has another address ($1)" both_hear
    make_again 10.0.0.2
    await "the interface was made again ($1)" both_hear
}

for interface in eth0 10.0.0.0/24 ""; do
    begin_nodes "$interface"
    changes "${interface:-routes}"
    [[ $interface == "" ]] || end_nodes
done

# Where it cannot find back, it says so: in its output, to `info`, `top` and `doctor`.
change addr del 10.0.0.2/24 dev eth0
await "the node says that it has no way" says 1 "no route to 239"
await "info says it" shows "no route to 239" look 1 info networks@1
await "top says it" shows "no route to 239" look 1 top networks@1 --once
await "doctor says it" shows "no route to 239" look 1 doctor
give_address 10.0.0.2
await "the address is back" both_hear
hides() { ! shows "$@"; }
await "what is over is said no more" hides "no route to 239" look 1 info networks@1
ip netns exec "$here" nft add chain inet lab leaving '{ type filter hook output priority 0; }'
ip netns exec "$here" nft add rule inet lab leaving udp dport 1-65535 reject
await "the node says that the host refuses" says 1 "the host refuses what this node sends"
end_nodes
