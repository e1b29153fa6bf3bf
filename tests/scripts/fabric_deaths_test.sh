#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# Ranks and daemons are killed at any moment, and started again, while all exchange messages over
# link fabric: between hosts of the lab, and on loop-back. tests/support/deaths.sh has the course.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"
source "$RMEM_SOURCE_DIR/tests/support/deaths.sh"

libraries=$(ldconfig -p)
[[ $libraries == *libfabric.so.1* ]] || skip "there is no libfabric"
export RMEM_LINK=fabric
if ((EUID == 0)) && command -v nft >/dev/null; then
    begin_hosts lab 3
else
    hosts_prefix=()
fi
deaths
