#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# The loop over hosts that docs/guide/clusters.md shows starts a ring, with scripts/lab-ssh in ssh's
# place, on three hosts of the lab which share nothing but files and a network.
# shellcheck source=tests/support/lab.sh
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

need_namespaces ip nft unshare
ldconfig -p | grep libfabric >"$output" || skip "there is no libfabric"
scripts/lab up 3 --apart --name "$name" >"$output" 2>&1 || fail "a lab of 3 hosts"

# block <word in its lines>: the page's block of sh that has it.
block() {
    awk -v word="$1" '/^```/ { if (found) printf "%s", text; text = ""; found = 0; next }
        { text = text $0 "\n" } index($0, word) { found = 1 }' docs/guide/clusters.md
}

# Where the home directory is, the hosts' names are addresses, and the program is, is this test's.
here() {
    sed -e "s#~#$work#g" -e "s#\\./program#$RMEM_BUILD_DIR/tests/lab-traffic 100 1#" \
        -e 's#\ba:7400,b:7400,c:7400#10.0.0.1:7400,10.0.0.2:7400,10.0.0.3:7400#' \
        -e 's#in a b c;#in 10.0.0.1 10.0.0.2 10.0.0.3;#' -e "s#\\bssh \"#$PWD/scripts/lab-ssh \"#"
}

# lab-ssh says more than ssh would: the lab's settings.
{ block 'export RMEM_LINK=fabric RMEM_RING' && echo 'unset RMEM_INTERFACE'; } |
    here >"$work/rig.env"
block 'for host in' | here >"$work/loop"
"$RMEM_BUILD_DIR/tools/rmem" key --out "$work/rig.key" >"$output"
scripts/lab exec 0 --name "$name" -- timeout 100 sh "$work/loop" >"$output" 2>&1 || fail "the loop"
[[ $(grep -c 'rank [0-2] of 3: all in order' "$output") == 3 ]] ||
    fail "not all of 3 hosts are in the ring"
