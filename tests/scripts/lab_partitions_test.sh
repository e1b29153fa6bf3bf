#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# The network falls into parts that do not hear each other, also one way, and heals, while ranks
# exchange messages:
# between hosts of the lab. tests/support/deaths.sh has the course.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"
source "$RMEM_SOURCE_DIR/tests/support/deaths.sh"

begin_hosts lab 3
partitions
