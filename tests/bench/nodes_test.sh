#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# bench/nodes: 32 nodes on hosts of the lab, which share two processors, join one ring and end with
# equal banks, also where datagrams are lost. How long that takes is told, and no question here.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

nodes() { bench/nodes --name "$name" --build "$RMEM_BUILD_DIR" "$@" >"$output" 2>&1; }
refused() {
    local sentence=$1
    shift
    ! nodes "$@" || fail "bench/nodes $* is refused"
    grep -q -- "$sentence" "$output" || fail "bench/nodes $* is refused with '$sentence'"
}

bench/nodes --help | grep "^examples:" >/dev/null || fail "--help has examples"
refused "a lab has 2 to 200" --nodes 1
refused "wants numbers" --nodes many
refused "at least one is needed" --writes 0
((EUID == 0)) || refused "only root may make network namespaces" --nodes 2
need_namespaces ip nft python3

nodes --nodes 32 --writes 20 --json || fail "32 nodes join, and have equal banks"
grep -q '"nodes": 32, "joined_ms": ' "$output" || fail "their figures are told"
cat "$output"
nodes --nodes 8 --writes 20 --loss 2% --json || fail "8 nodes join where datagrams are lost"
cat "$output"
