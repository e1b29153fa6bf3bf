#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# `rmem node --unit` tells programs of cards which node is theirs, for as long as it runs.
set -euo pipefail

rmem=$RMEM_BUILD_DIR/tools/rmem
work=$(mktemp -d)
node=
trap 'if [[ $node ]]; then kill "$node" && wait "$node" || true; fi; rm -rf "$work"' EXIT
export XDG_RUNTIME_DIR=$work
fail() {
    echo "FAILED: $*"
    cat "$work"/*.log
    exit 1
}
await() { # <sentence>
    for ((i = 0; i < 600; ++i)); do
        if grep -qF -- "$1" "$work/node.log"; then return; fi
        sleep 0.05
    done
    fail "nobody said: $1"
}

for link in direct ring udp; do
    options=(--link "$link" --nodes 1 --node 0 --ranks 2 --size 64K)
    if [[ $link == udp ]]; then options+=(--interface lo); fi
    : >"$work/node.log"  # the last one's sentence is not this one's
    "$rmem" node --unit 5 --ring "unit-$$" "${options[@]}" 2>>"$work/node.log" &
    node=$!
    await "unit 5 is node 0 of ring 'unit-$$'"
    file=$work/rmem/unit-5
    for setting in "RMEM_RING=unit-$$" "RMEM_LINK=$link" RMEM_NODE=0 RMEM_RANKS=2 \
        RMEM_SIZE=65536; do
        grep -qx "$setting" "$file" || fail "$(cat "$file")"
    done
    if "$rmem" node --unit 5 --ring "other-$$" "${options[@]}" 2>"$work/second.log"; then
        fail "a second keeper was accepted"
    fi
    grep -q "kept by another process" "$work/second.log" || fail "it does not say why"
    kill -TERM "$node"
    wait "$node" || fail "it did not end well"
    node=
    [[ ! -e $file ]] || fail "the file was left behind"
done
if "$rmem" node --link direct --node 0 --nodes 1 2>"$work/none.log"; then
    fail "a node without engine and unit was accepted"
fi
grep -q -- "--unit" "$work/none.log" || fail "it does not say what to give"
