#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# Plain MPI programs, built with Debian's Open MPI, run over the ring on every link: what is sent
# arrives, and it did go over the ring; and one whose rank aborts or is killed ends with an error,
# and leaves nothing behind.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

use_open_mpi
traffic_on_every_link
