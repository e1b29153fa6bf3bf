#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# The paper's synchronous receive: each message comes back marked as it was thrown; the curve ends
# with n_1/2.
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

comes_back() {
    ranks "$1" 2 gamma-receive --size 8 --count 300 >"$work/small"
    expect "$work/small" "8 bytes: one way"
    ranks "$1" 2 gamma-receive --size 20000 --count 30 >"$work/large"
    expect "$work/large" "20000 bytes: one way"
}

on_every_link comes_back
shows_progress "one way, us" gamma-receive --count 1000000
ranks direct 2 gamma-receive --count 20 >"$work/curve"
expect "$work/curve" "n_1/2"
refuses "the ring has only 1 ranks left" direct 3 gamma-receive --size 8
"$programs/gamma-receive" --help >"$work/help"
expect "$work/help" "throughput curve"
