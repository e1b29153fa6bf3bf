#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# `rmem node --unit` tells programs of cards which node is theirs, for as long as it runs.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

rmem=$RMEM_BUILD_DIR/tools/rmem
node=
at_end() {
    if [[ $node ]] && kill "$node"; then wait "$node" || true; fi
}
export XDG_RUNTIME_DIR=$work

for link in direct ring udp; do
    options=(--link "$link" --nodes 1 --node 0 --ranks 2 --size 64K)
    if [[ $link == udp ]]; then options+=(--interface lo); fi
    : >"$output"  # the last one's sentence is not this one's
    "$rmem" node --unit 5 --ring "unit-$$" "${options[@]}" 2>>"$output" &
    node=$!
    await "it says its unit" grep -qF "unit 5 is node 0 of ring 'unit-$$'" "$output"
    file=$work/rmem/unit-5
    for setting in "RMEM_RING=unit-$$" "RMEM_LINK=$link" RMEM_NODE=0 RMEM_RANKS=2 \
        RMEM_SIZE=65536; do
        grep -qx "$setting" "$file" || fail "$(cat "$file")"
    done
    if "$rmem" node --unit 5 --ring "other-$$" "${options[@]}" 2>"$output"; then
        fail "a second keeper was accepted"
    fi
    grep -q "kept by another process" "$output" || fail "it does not say why"
    kill -TERM "$node"
    wait "$node" || fail "it did not end well"
    node=
    [[ ! -e $file ]] || fail "the file was left behind"
done
if "$rmem" node --link direct --node 0 --nodes 1 2>"$output"; then
    fail "a node without engine and unit was accepted"
fi
grep -q -- "--unit" "$output" || fail "it does not say what to give"
