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

# A kept node takes what is written while no program runs, and peek says where nobody does.
for timing in none gt200; do
    options=(--link ring --nodes 2 --ring "kept-$$" --timing "$timing")
    "$rmem" node --quiet --node 0 "${options[@]}" &
    other=$!
    "$rmem" node --node 1 "${options[@]}" 2>"$output" &
    node=$!
    kept() { [[ $("$rmem" info "kept-$$" 2>&1) == *"node 1: kept by process $node"* ]]; }
    await "it is kept" kept
    "$rmem" poke "kept-$$" 0x100 77 --node 0
    [[ $("$rmem" peek "kept-$$" 0x100 --node 1 2>&1) == 77 ]] || fail "it has not come"
    kill -KILL "$node"
    wait "$node" || true
    node=$other
    "$rmem" poke "kept-$$" 0x104 78
    [[ $("$rmem" peek "kept-$$" 0x104 --node 0 2>&1) == 78 ]] || fail "it has not come to 0"
    for look in "peek kept-$$ 0x104" "dump kept-$$ --from 0x104 --to 0x108"; do
        # shellcheck disable=SC2086  # words of a command
        "$rmem" $look --node 1 >"$work/shown" 2>&1
        # Without timing writers bring their writes to a node that was left, too.
        grep -qE "lacks what was written last|^78$|4e 00 00 00" "$work/shown" ||
            fail "it does not say that this is old: $(cat "$work/shown")"
        [[ $timing == none ]] || grep -q "lacks what" "$work/shown" || fail "it has come to nobody"
    done
    kill -TERM "$node" && wait "$node"
    node=
done
