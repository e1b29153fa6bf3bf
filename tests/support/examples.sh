# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests of examples/: source it first.
#
#   on_every_link <function>    calls `<function> <link>` for each link; the ring keeps no timing
#   ranks <link> <n> <program> <argument>...    runs the example under `rmem run`
#   expect <file> <sentence>    fails unless a line of the file holds the sentence
#   refuses <sentence> <link> <n> <program> <argument>...    fails unless the ranks end with another
#   code than 0, and say that
#   shows_progress <sentence> <program> <argument>...    fails unless that is seen while two ranks
#   of it still run
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

rmem=$RMEM_BUILD_DIR/tools/rmem
programs=$RMEM_BUILD_DIR/examples
[[ -x $rmem && -d $programs ]] || skip "this build has no rmem command or no examples"

ranks() {
    local link=$1 count=$2 program=$3
    shift 3
    "$rmem" run -n "$count" --link "$link" --timing none -- "$programs/$program" "$@"
}

expect() {
    grep -qF -- "$2" "$1" || fail "no line with '$2' in: $(cat "$1")"
}

refuses() {
    ! ranks "${@:2}" >"$output" 2>&1 || fail "accepted: ${*:2}"
    expect "$output" "$1"
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
    kill -TERM "$ring" 2>/dev/null || fail "$program has ended before it was seen to begin"
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
