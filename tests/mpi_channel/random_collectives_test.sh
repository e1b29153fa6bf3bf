#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# Thousands of random collective calls by a seed, on random communicators of 2 to 8 ranks: what
# every rank receives by multicast is what it receives by the MPI's own algorithms. With Open MPI,
# and with the MPICH of mpi_channel/mpich/build.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

calls=1500

# digests <ranks> <all or off>: what the ranks have received, in a file of that name
digests() {
    export RMEM_MPI=collectives=$2
    good_run "$1" "$1 ranks on $RMEM_LINK, seed $1, $2" "$work/random_collectives" "$1" $calls
    grep '^rank [0-9]*: digest' "$output" | sort -V >"$work/$2"
    (($(wc -l <"$work/$2") == $1 * 10)) || fail "the ranks have not told what they received"
}

# equal_digests <ranks>
equal_digests() {
    digests "$1" off
    digests "$1" all
    (($1 == 2)) || grep -q ' [1-9][0-9]* multicasts' "$output" || fail "there was no multicast"
    cmp -s "$work/all" "$work/off" || {
        diff "$work/off" "$work/all" | head -n 4 || true
        fail "seed $1 with $1 ranks: by multicast they have received something else"
    }
}

random_collectives() {
    local ranks link
    build random_collectives
    for ranks in 2 3 4 5 8; do RMEM_LINK=direct equal_digests $ranks; done
    for link in ring udp; do RMEM_LINK=$link equal_digests 3; done
}

with_each_mpi random_collectives
