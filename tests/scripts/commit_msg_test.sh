#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the hook refuses, and what it lets pass.
set -euo pipefail

hook=$RMEM_SOURCE_DIR/scripts/lib/commit-msg
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() { # <passes: 0 or 1> <message> [what is said]
    local status=0
    printf '%b\n' "$2" >"$work/message"
    "$hook" "$work/message" 2>"$work/said" || status=$?
    if [[ $status != "$1" || $(<"$work/said") != *"${3:-}"* ]]; then
        echo "status $status for: $2"
        cat "$work/said"
        exit 1
    fi
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
