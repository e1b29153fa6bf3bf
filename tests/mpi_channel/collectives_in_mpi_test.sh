#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# MPI's collective calls by multicast, and by the MPI's own algorithms: the results are the same, on
# every link; a broadcast is one multicast, and none where they are off; what an MPI calls from
# inside its own functions does no harm; calls that are wrong end with the error that MPICH itself
# gives; sessions without MPI_Init have them, too. With Open MPI, and with the MPICH of
# mpi_channel/mpich/build.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

# Of all ranks, as they have told at their end.
multicasts() {
    awk '
        { for (i = 2; i <= NF; ++i) if ($i ~ /^multicasts;?$/) sum += $(i - 1) }
        END { print sum + 0 }
    ' "$output"
}

# multicasts_of <broadcasts of each rank>: how many multicasts a run of three ranks posts
multicasts_of() {
    good_run 3 "$1 broadcasts of each rank" "$work/collectives" bcasts "$1" >&2
    multicasts
}

# Nodes that begin at the same time, of two jobs, on fewer processors than there are.
two_jobs_join_at_once() {
    local other
    echo "--- two jobs of 6 ranks on udp"
    RMEM_RING=mpi-test-$$-other timeout 100 "${launcher[@]}" -n 6 "$work/collectives" bcasts 10 \
        >"$work/other" 2>&1 &
    other=$!
    run 6 "$work/collectives" bcasts 10 || fail "one of two jobs on udp"
    wait "$other" || {
        cp "$work/other" "$output"
        fail "the other of two jobs on udp"
    }
    left_nothing "two jobs on udp"
}

collectives_on_every_link() {
    local ranks link few many
    build collectives inside
    export RMEM_MPI
    for RMEM_MPI in collectives=all collectives=off; do
        export RMEM_LINK=direct
        for ranks in 2 3 4 8; do
            good_run $ranks "$ranks ranks, $RMEM_MPI" "$work/collectives"
        done
        for link in ring udp; do
            RMEM_LINK=$link good_run 3 "3 ranks on $link, $RMEM_MPI" "$work/collectives"
        done
    done

    RMEM_MPI=collectives=all
    good_run 3 "calls from inside" "$work/inside" "$work/file"
    good_run 3 "a rank gives other bytes than the others do" "$work/collectives" unequal
    RMEM_LINK=udp two_jobs_join_at_once
    good_run 3 "3 ranks of four threads" "$work/collectives" threads 200
    few=$(multicasts_of 10)
    many=$(multicasts_of 60)
    ((many - few == 50 * 3)) || fail "150 more broadcasts are $((many - few)) more multicasts"
    RMEM_MPI=collectives=off
    many=$(multicasts_of 60)
    ((many == 0)) || fail "there are $many multicasts though they are off"
    RMEM_MPI=collectives=all
}

with_each_mpi collectives_on_every_link

# Open MPI itself looks at what is wrong before any component does.
build wrong_calls sessions
RMEM_LINK=direct good_run 3 "calls that are wrong" "$work/wrong_calls"
(($(multicasts) > 0)) || fail "no multicast was posted between calls that are wrong"
RMEM_LINK=direct good_run 3 "sessions without MPI_Init" "$work/sessions"
(($(multicasts) > 0)) || fail "no multicast was posted in sessions"
