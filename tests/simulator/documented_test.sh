#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
# What docs/ shows of the simulation is what it gives: the table, and the data of the figures.
set -euo pipefail
cd "$RMEM_SOURCE_DIR"

if [[ ! -x $RMEM_BUILD_DIR/tools/rmem ]]; then
    echo "skipped: the rmem command is not built"
    exit 77
fi
simulator/pictures/run --check --build "$RMEM_BUILD_DIR"
