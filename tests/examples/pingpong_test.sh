#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# Each message comes back intact, small and large; two ranks are wanted and nothing else.
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

comes_back_intact() {
    ranks "$1" 2 pingpong --count 1000 --warmup 10 >"$work/small"
    expect "$work/small" "1000 round trips of 8 bytes, every one intact"
    expect "$work/small" "p99"
    ranks "$1" 2 pingpong --count 50 --warmup 1 --size 100000 >"$work/large"
    expect "$work/large" "50 round trips of 100000 bytes, every one intact"
}

refuses_three_ranks() {
    if ranks "$1" 3 pingpong >"$work/three" 2>&1; then
        echo "FAILED: three ranks were accepted"
        exit 1
    fi
    expect "$work/three" "takes two ranks, not 3"
}

on_every_link comes_back_intact
refuses_three_ranks direct
"$programs/pingpong" --help >"$work/help"
expect "$work/help" "round trips that are measured"
