#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
# What docs/ shows of the simulation is what it gives: the table, and the data of the figures.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"
cd "$RMEM_SOURCE_DIR"

need "$RMEM_BUILD_DIR/tools/rmem"
simulator/pictures/run --check --build "$RMEM_BUILD_DIR"
