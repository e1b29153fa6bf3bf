#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# Thousands of random collective calls by a seed, on random communicators of 2 to 5 ranks: what
# every rank receives by multicast is what it receives by the MPI's own algorithms. With Open MPI,
# and with the MPICH of mpi_channel/mpich/build.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

calls=1500

# digests <ranks> <all or off>: what the ranks have received, in a file of that name
digests() {
    export RMEM_MPI_COLLECTIVES=$2
    good_run "$1" "$1 ranks, seed $1, $2" "$work/random" "$1" $calls
    grep '^rank [0-9]*: digest' "$output" | sort -V >"$work/$2"
    (($(wc -l <"$work/$2") == $1 * 10)) || fail "the ranks have not told what they received"
}

random_collectives() {
    local ranks
    "$@" -O1 -Wall -Wextra -Werror \
        "$RMEM_SOURCE_DIR/tests/support/programs/mpi_random_collectives.c" -o "$work/random"
    for ranks in 2 3 4 5; do
        digests $ranks off
        digests $ranks all
        ((ranks == 2)) || grep -q ' [1-9][0-9]* multicasts' "$output" ||
            fail "there was no multicast"
        cmp -s "$work/all" "$work/off" || {
            diff "$work/off" "$work/all" | head -n 4 || true
            fail "seed $ranks with $ranks ranks: by multicast they have received something else"
        }
    done
}

export RMEM_LINK=direct
need_open_mpi
launcher=("$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-openmpi" --oversubscribe)
random_collectives mpicc.openmpi

need_mpich
[[ -e $RMEM_PROVIDER_PATH/libbbp-mpich-coll.so ]] ||
    skip "Open MPI's have run, but MPICH's were built without its headers"
launcher=("$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-mpich")
random_collectives mpicc.mpich -Wno-stringop-overflow
