#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# The programs of the guides compile and run as they are printed, and print what is shown.
exec python3 -B "$RMEM_SOURCE_DIR/tests/support/guide.py"
