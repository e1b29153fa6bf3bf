#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# The same programs as openmpi_test.sh, built with Debian's MPICH, run over the ring with the MPICH
# of mpi_channel/mpich/build.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

use_mpich
traffic_on_every_link
