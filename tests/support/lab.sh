# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests among several hosts: source it first. It goes to the root of the tree.
#
#   name                        of the test's own lab, which is gone when the test ends
#   output                      a file for what commands say
#   skip <reason>               ends the test as skipped
#   need_namespaces <tool>...   skips, with the reason, where no lab can be made, or one of these
#                               tools is missing
#   fail <sentence>             shows what is in `output`, and ends the test
#
# For one that runs in a lab, and where there is none on loop-back:
#
#   begin_hosts <place> <n>     lab: makes a lab of n hosts; loop-back: all are this one
#   on <host> <program>...      becomes that program on the host, as `scripts/lab exec` has it in
#                               its environment
#   ring_restarts <option>...   runs ring-restarts (tests/support/programs/ring_restarts.cpp) on
#                               the hosts; fails unless all held
set -euo pipefail
cd "$RMEM_SOURCE_DIR"

output=$(mktemp)
name=test_$$
trap end_test EXIT

end_test() {
    local job
    for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
    wait
    rm -f "$output"
    ((EUID != 0)) || scripts/lab down --name "$name" || true
}

skip() {
    echo "skipped: $1"
    exit 77
}

need_namespaces() {
    local tool
    ((EUID == 0)) || skip "only root may make network namespaces"
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip "there is no '$tool'"
    done
    ip netns add "rmem-$name-net" 2>"$output" ||
        skip "this host makes no network namespaces: $(cat "$output")"
    ip netns delete "rmem-$name-net"
}

fail() {
    cat "$output"
    echo "failed: $1"
    exit 1
}

begin_hosts() {
    place=$1
    hosts_prefix=()
    if [[ $place == lab ]]; then
        need_namespaces ip nft
        scripts/lab up "$2" --name "$name" >"$output" 2>&1 || fail "a lab of $2 hosts"
        hosts_prefix=(scripts/lab exec "{}" --name "$name" --)
    else
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
