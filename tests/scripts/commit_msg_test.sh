#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the hook refuses, and what it lets pass.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

hook=$RMEM_SOURCE_DIR/scripts/lib/commit-msg
check() { # <passes: 0 or 1> <message> [what is said]
    local status=0
    printf '%b\n' "$2" >"$work/message"
    "$hook" "$work/message" 2>"$output" || status=$?
    [[ $status == "$1" && $(<"$output") == *"${3:-}"* ]] || fail "status $status for: $2"
}

subject='ring, link/udp: let a writer go on'
check 0 "$subject\n\nIt waited.\n# Le""st it waits: a comment of git."
check 0 "Merge branch 'Main'"
check 1 'Let a writer go on' 'area: imperative'
check 1 'ring: Let a writer go on' 'area: imperative'
check 1 'ring: let a writer go on.' 'area: imperative'
check 1 "ring: $(printf 'a%.0s' {1..67})" '73 characters'
check 0 "ring: $(printf 'a%.0s' {1..66})"
check 1 "$subject\nIt waited." 'second line'
check 1 "$subject\n\nIt waits for\never." 'for ev''er'
