#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# Ranks and daemons are killed at any moment, and started again, while all exchange messages:
# between hosts of the lab. tests/support/deaths.sh has the course.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"
source "$RMEM_SOURCE_DIR/tests/support/deaths.sh"

begin_hosts lab 3
deaths
