# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests among several hosts: source it first. It goes to the root of the tree.
#
#   name                        of the test's own lab, which is gone when the test ends
#   need_namespaces <tool>...   skips, with the reason, where no lab can be made, or one of these
#                               tools is missing
#
# For one that runs in a lab, and where there is none on loop-back:
#
#   begin_hosts <place> <n>     lab: makes a lab of n hosts; loop-back: all are this one; here: the
#                               same, and links find each other as they do by themselves. What runs
#                               of an earlier place is ended
#   on <host> <program>...      becomes that program on the host, as `scripts/lab exec` has it in
#                               its environment
#   ring_restarts <option>...   runs ring-restarts (tests/support/programs/ring_restarts.cpp) on
#                               the hosts; fails unless all held
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"
cd "$RMEM_SOURCE_DIR"

name=test_$$

end_jobs() {
    local job
    for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
    wait
}
at_end() {
    end_jobs
    ((EUID != 0)) || scripts/lab down --name "$name" || true
}

need_namespaces() {
    ((EUID == 0)) || skip "only root may make network namespaces"
    need "$@"
    ip netns add "rmem-$name-net" 2>"$output" ||
        skip "this host makes no network namespaces: $(cat "$output")"
    ip netns delete "rmem-$name-net"
}

begin_hosts() {
    end_jobs
    place=$1
    hosts_prefix=()
    unset RMEM_LINK RMEM_NODES RMEM_INTERFACE RMEM_GROUP
    if [[ $place == lab ]]; then
        need_namespaces ip nft
        scripts/lab up "$2" --name "$name" >"$output" 2>&1 || fail "a lab of $2 hosts"
        hosts_prefix=(scripts/lab exec "{}" --name "$name" --)
    elif [[ $place == loop-back ]]; then
        # A port of its own, so that no other test hears it.
        export RMEM_LINK=udp RMEM_NODES=$2 RMEM_INTERFACE=lo
        export RMEM_GROUP=239.1.2.3:$((20000 + $$ % 20000))
    fi
}

on() {
    local host=$1
    shift
    if [[ $place == lab ]]; then
        exec scripts/lab exec "$host" --name "$name" -- "$@"
    else
        exec env "RMEM_NODE=$host" "$@"
    fi
}

ring_restarts() {
    "$RMEM_BUILD_DIR/tests/ring-restarts" --rmem "$RMEM_BUILD_DIR/tools/rmem" "$@" -- \
        "${hosts_prefix[@]}" \
        >"$output" 2>&1 || fail "ring-restarts $*"
    tail -n 1 "$output"
}
