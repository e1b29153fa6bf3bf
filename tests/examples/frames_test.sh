#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# Every follower sees whole frames, and the end; a bad argument is refused.
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

comes_in_order() {
    ranks "$1" 3 frames 200 >"$work/frames"
    expect "$work/frames" "200 frames of 16 words"
    [[ $(grep -c "stopped by node 0" "$work/frames") -eq 2 ]] ||
        fail "not both were stopped: $(cat "$work/frames")"
}

on_every_link comes_in_order
if "$programs/frames" many 2>"$work/usage"; then exit 1; fi
expect "$work/usage" "usage: rmem run"
