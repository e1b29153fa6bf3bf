#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# The paper's figures come out, of both versions; two ranks are wanted and nothing else.
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

prints_the_papers_figures() {
    ranks "$1" 2 fm-pingpong --rounds 1 --packets 500 >"$work/figures"
    expect "$work/figures" "FM 1.0, FM_send_4"
    expect "$work/figures" "FM 2.x"
    expect "$work/figures" "t0"
    expect "$work/figures" "16000"
}

on_every_link prints_the_papers_figures
shows_progress "latency us" fm-pingpong --rounds 1001
refuses "takes two ranks, not 3" direct 3 fm-pingpong
