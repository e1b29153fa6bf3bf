#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# Ranks and daemons are killed at any moment, and started again, while all exchange messages:
# on loop-back, so without root. tests/support/deaths.sh has the course.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"
source "$RMEM_SOURCE_DIR/tests/support/deaths.sh"

begin_hosts loop-back 3
export RMEM_FAULTS='seed=5; drop:share=1%; duplicate:share=2%,by=300us; hold:by=200us,share=2%'
deaths
