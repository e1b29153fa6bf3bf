#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# MPI over Fast Messages: programs run unchanged, receive what they receive over the channel
# interface, and Fast Messages have counted their messages; a killed rank ends the run; ranks of
# different transports refuse each other. With Open MPI, and with the MPICH of
# mpi_channel/mpich/build.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

# fm_run <ranks> <what> <program>...: a good run in which Fast Messages have counted messages of
# each rank, but over the channel none
fm_run() {
    local ranks=$1 counted expected=$1
    good_run "$ranks" "$2 over $RMEM_MPI" "${@:3}"
    [[ $RMEM_MPI != transport=channel ]] || expected=0
    counted=$(grep -c "rank [0-9]*: by .*, which has counted [1-9]" "$output" || true)
    [[ $counted == "$expected" ]] || {
        fail "$2 over $RMEM_MPI: messages of $counted of $ranks ranks were counted"
    }
}

# random_calls <file>: what three ranks have received by collective calls of a seed
random_calls() {
    fm_run 3 "random collective calls" "$work/random_collectives" 3 200
    grep '^rank [0-9]*: digest' "$output" | sort -V >"$1"
    [[ -s $1 ]] || fail "the ranks have not told what they received"
}

netpipe() {
    fm_run 2 "$1" "$1" -i -n 3 -u 16384 -o "$work/np.out"
    grep -q 'Integrity check passed' "$output" ||
        fail "$1 over $RMEM_MPI has passed no check"
    if grep -q 'Integrity check failed' "$output"; then
        fail "$1 over $RMEM_MPI: bytes are others than were sent"
    fi
}

# refused <transport of rank 0> <of the others> <sentence>
# What the ranks say goes to files: the launcher ends all at once, and forwards no more then.
refused() {
    rm -f "$work"/said.*
    # shellcheck disable=SC2016 # the inner shell's
    if (
        unset FI_LOG_LEVEL
        run 2 bash -c 'rank=${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-}}
            (( rank != 0 )) || RMEM_MPI=transport=$1
            exec "$0" 2>"$2.$rank"' "$work/traffic" "$1" "$work/said"
    ); then
        fail "ranks of $1 and $2 run together"
    fi
    cat "$work"/said.* >>"$output"
    grep -q "$3" "$output" || fail "ranks of $1 and $2: none says '$3'"
    left_nothing "ranks of $1 and $2"
}

# over_fm <NetPIPE>
over_fm() {
    local netpipe=$1
    build traffic random_collectives
    export RMEM_LINK=direct RMEM_MPI=transport=channel
    random_calls "$work/expected"
    RMEM_MPI=transport=fm
    fm_run 2 "2 ranks" "$work/traffic"
    random_calls "$work/found"
    cmp -s "$work/expected" "$work/found" || fail "over fm ranks have received something else"
    if command -v "$netpipe" >/dev/null; then netpipe "$netpipe"; fi
    echo "--- ranks of different transports"
    RMEM_MPI=transport=channel refused fm channel \
        'sends by transport .*, this one by .*: give all ranks the same RMEM_MPI'
}

use_open_mpi
over_fm NPopenmpi
RMEM_LINK=udp fm_run 3 "3 ranks on udp" "$work/traffic"
bad_end "a rank over fm is killed" "$work/traffic" kill

use_mpich
over_fm NPmpich2
