#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# MPICH's own test programs of point-to-point messages, of communicators and of collective calls
# that are wrong: no line of their lists fails over bbp that passes over tcp;ofi_rxm
# (mpi_channel/mpich/compare). A line has three attempts, with either: launchers and programs are
# not this project's.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

need_mpich
unset FI_LOG_LEVEL
"$RMEM_SOURCE_DIR/mpi_channel/mpich/compare" --quick --attempts 3 --lists pt2pt,comm,errors/coll \
    --mpich "$RMEM_MPICH" --build "$RMEM_BUILD_DIR"
