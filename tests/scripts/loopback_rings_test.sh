#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# Several rings on one network do not see each other: on loop-back, so without root.
# tests/support/rings_apart.sh has the course.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"
source "$RMEM_SOURCE_DIR/tests/support/rings_apart.sh"

begin_hosts loop-back 3
rings_apart
