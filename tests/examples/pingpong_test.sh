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

on_every_link comes_back_intact
refuses "takes two ranks, not 3" direct 3 pingpong
"$programs/pingpong" --help >"$work/help"
expect "$work/help" "round trips that are measured"
