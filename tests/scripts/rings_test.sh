#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# Several rings on one network do not see each other: on loop-back, and between hosts of the lab.
# Neither of two rings in one group, and neither of two of one name with different keys, sees what
# the other writes; and each counts what it hears of the other.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

rmem() { "$RMEM_BUILD_DIR/tools/rmem" "$@"; }

# start_node <ring> <host> [key file]: the ring's daemon on that host.
start_node() {
    (
        export RMEM_RING=$1 RMEM_SIZE=64K
        [[ -z ${3:-} ]] || export RMEM_KEY_FILE=$3
        on "$2" "$RMEM_BUILD_DIR/tools/rmem" node --quiet
    ) &
}

has_members() { [[ $(rmem info "$1" 2>&1 || true) == *"; members: $2"$'\n'* ]]; }
holds() { [[ $(rmem peek "$1" 0x100 2>&1 || true) == *"$2" ]]; }
# counts <segment> <counter>: more than none.
counts() {
    rmem info "$1" |
        awk -v name="$2" '$4 == name && $2 > 0 { found = 1 } END { exit !found }'
}
# write_word <ring> <node> <value>: as that node's; the others are to have it.
write_word() { rmem poke "$1@$2" 0x100 "$3" || fail "node $2 writes into ring $1"; }

rings_apart() {
    local host ring
    local one=one-$$ two=two-$$
    for ring in "$one" "$two"; do
        for host in 0 1 2; do start_node "$ring" $host; done
    done
    for ring in "$one" "$two"; do
        for host in 0 1 2; do
            await "node $host is in ring $ring" has_members "$ring@$host" 0-2
        done
    done
    write_word $one 0 7
    write_word $two 1 9
    for host in 0 1 2; do
        await "node $host of ring $one has its own ring's word" holds "$one@$host" 7
        await "node $host of ring $two has its own ring's word" holds "$two@$host" 9
        for ring in "$one" "$two"; do
            await "node $host of ring $ring counts what it hears of the other" \
                counts "$ring@$host" refused_ring
        done
    done
    echo "two rings in one group: apart"
}

keys_apart() {
    local host ring=keys-$$ keys=$work/keys-$place
    for host in 0 2; do rmem key --out "$keys-$host" >/dev/null; done
    start_node "$ring" 0 "$keys-0"
    start_node "$ring" 1 "$keys-0"
    start_node "$ring" 2 "$keys-2"
    for host in 0 1; do
        await "node $host is in the ring of its key" has_members "$ring@$host" 0-1
    done
    await "node 2 is alone" has_members "$ring@2" 2
    write_word "$ring" 0 7
    write_word "$ring" 2 9
    for host in 0 1; do await "node $host has its own ring's word" holds "$ring@$host" 7; done
    for host in 0 1 2; do
        await "node $host counts what has another key" counts "$ring@$host" refused_tag
    done
    holds "$ring@2" 9 || fail "node 2 keeps its own word"
    holds "$ring@1" 7 || fail "node 1 keeps its own ring's word"
    echo "two keys in one ring's name: apart"
}

for place in loop-back lab; do
    begin_hosts $place 3
    rings_apart
    keys_apart
done
