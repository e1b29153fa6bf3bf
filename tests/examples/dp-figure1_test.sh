#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All five channels of the graph carry a message, and so does the one that comes while it runs.
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

every_channel_carries() {
    ranks "$1" 3 dp-figure1 "$RMEM_SOURCE_DIR/examples/dp-figure1/figure-1.dot" >"$work/$1"
    expect "$work/$1" "6 endpoints, 5 channels"
    for channel in "<1,1> -> <5,1>" "<2,1> -> <1,2>" "<6,1> -> <1,2>" \
        "<3,2> -> <2,1>" "<3,2> -> <6,1>" "<1,1> -> <1,2>"; do
        expect "$work/$1" "$channel"
    done
}

on_every_link every_channel_carries
