# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests of examples/: source it first. It makes the folder `work` and removes it at the end.
#
#   on_every_link <function>    calls `<function> <link>` for each link; the ring keeps no timing
#   ranks <link> <n> <program> <argument>...    runs the example under `rmem run`
#   expect <file> <sentence>    fails unless a line of the file holds the sentence
#   shows_progress <sentence> <program> <argument>...    fails unless that is seen while two ranks
#   of it still run
set -euo pipefail

rmem=$RMEM_BUILD_DIR/tools/rmem
programs=$RMEM_BUILD_DIR/examples
if [[ ! -x $rmem || ! -d $programs ]]; then
    echo "skipped: this build has no rmem command or no examples"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ranks() {
    local link=$1 count=$2 program=$3
    shift 3
    "$rmem" run -n "$count" --link "$link" --timing none -- "$programs/$program" "$@"
}

expect() {
    if ! grep -qF -- "$2" "$1"; then
        echo "FAILED: no line with '$2' in:"
        cat "$1"
        exit 1
    fi
}

shows_progress() {
    local sentence=$1 program=$2 ring progress=$work/progress
    shift 2
    # Not by `ranks`, which the shell would run in a process of its own, and that would be ended
    # instead.
    "$rmem" run -n 2 -- "$programs/$program" "$@" >"$progress" &
    ring=$!
    for ((i = 0; i < 600; ++i)); do
        if grep -qF -- "$sentence" "$progress"; then break; fi
        if ! kill -0 "$ring" 2>/dev/null; then break; fi
        sleep 0.05
    done
    if ! kill -TERM "$ring" 2>/dev/null; then
        echo "FAILED: $program has ended before it was seen to begin"
        exit 1
    fi
    wait "$ring" || true
    expect "$progress" "$sentence"
}

on_every_link() {
    local link
    for link in direct ring udp; do
        echo "--- $1 on $link"
        "$1" "$link"
    done
}
