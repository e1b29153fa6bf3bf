#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# A rank is killed, and no launcher ends the others: their collective calls by multicast fail by
# themselves, and nothing is left. On every link, with Open MPI, and with the MPICH of
# mpi_channel/mpich/build.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

# survive <call>: no launcher hears of the death before all ranks have ended, so the others' calls
# fail by themselves. What they say goes to files: it ends with ranks that never finalized, and a
# launcher then forwards no more.
survive() {
    local call=$1
    echo "--- a rank is killed, and the others go on: $call on $RMEM_LINK"
    rm -rf "$work/ended"
    mkdir "$work/ended"
    # shellcheck disable=SC2016 # the inner shell's
    run 3 bash -c '"$0" "$1" "$2"; touch "$2/ended.$$"
        while (($(ls "$2" | grep -c ended) < 3)); do sleep 0.02; done' \
        "$work/survivors" "$call" "$work/ended" || true
    cat "$work"/ended/* >>"$output" 2>&1 || true
    [[ $(grep -c "^rank [02]: $call has failed" "$output") == 2 ]] ||
        fail "$call of both others does not end with an error"
    left_nothing "$call"
}

survivors_on_every_link() {
    local call
    build survivors
    export RMEM_LINK
    for RMEM_LINK in direct ring udp; do
        for call in barrier bcast reduce allreduce allgather; do survive "$call"; done
    done
}

export RMEM_MPI=collectives=all RMEM_DEAD_TIMEOUT=3s
with_each_mpi survivors_on_every_link
