#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# scripts/soak, for some seconds on each link, and with daemons whose clients die again and again.
# By hand it runs for ten minutes.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

soak() {
    echo "--- $*"
    scripts/soak "$@" >"$output" 2>&1 || fail "soak $*"
    cat "$output"
}

scripts/soak --help | grep "^examples:" >/dev/null || fail "--help has examples"
soak 4
soak 4 --link ring
soak 4 --link direct
soak 14 --daemons --nodes 2 --ranks 4 --kills 6
