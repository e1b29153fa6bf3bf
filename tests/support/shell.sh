# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For all tests in shell: source it first, unless another of these files does.
#
#   work, output               a folder of the test's own, gone when it ends; a file in it for what
#                              commands say
#   at_end                     is called at the end, for tests to define
#   skip <reason>              ends the test as skipped
#   need <program>...          the same where one of these is missing
#   fail <sentence>            shows the end of what is in `output`, and ends the test
#   await <sentence> <command>...    until the command succeeds; if it does not within half a
#                              minute, fails
set -euo pipefail

work=$(mktemp -d)
output=$work/output
at_end() { :; }
trap 'at_end; rm -rf "$work"' EXIT

skip() {
    echo "skipped: $*"
    exit 77
}

need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || skip "there is no '$program'"
    done
}

fail() {
    [[ ! -e $output ]] || tail -n 40 "$output"
    echo "FAILED: $*"
    exit 1
}

await() {
    local sentence=$1 turn
    shift
    for ((turn = 0; turn < 600; ++turn)); do
        ! "$@" || return 0
        sleep 0.05
    done
    fail "$sentence"
}
