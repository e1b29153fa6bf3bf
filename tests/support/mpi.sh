# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests that run MPI programs over the ring: source it first. Ranks are started by
# `"${launcher[@]}" -n 4 program`.
#
#   need_open_mpi               skips where Open MPI or the provider is missing; root may use the
#                               launcher
#   need_mpich                  the same for the MPICH that mpi_channel/mpich/build has made
#   use_open_mpi, use_mpich     the same, and makes it what ranks are started by
#   with_each_mpi <command>...  once with Open MPI, and once with MPICH, if it has multicasts
#   build <name>...             programs of tests/support/programs, without mpi_, in `work`
#   run <ranks> <program>...    on a ring of its own, at most 100 s; true if it ended well
#   went_over_the_ring <ranks> <what>     fails unless that many ranks have told that they have sent
#                                         packets
#   left_nothing <what>         fails if something of the last run is still in /dev/shm
#   good_run <ranks> <what> <program>...  run, and all of that
#   bad_end <what> <program>... the launcher must tell that a rank of three did not end well, and
#                               nothing is left
#   traffic_on_every_link       what any MPI is to do: builds the programs, and runs them with 2, 3,
#                               4 and once 8 ranks, also where datagrams are lost; one rank aborts,
#                               one is killed
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

export FI_PROVIDER_PATH=$RMEM_BUILD_DIR/mpi_channel
export RMEM_MPICH=${RMEM_MPICH:-$RMEM_SOURCE_DIR/build/mpich}
export PATH=$RMEM_BUILD_DIR/tools:$PATH
export RMEM_INTERFACE=lo FI_LOG_LEVEL=info FI_LOG_PROV=bbp
launcher=()
compiler=()

fail() {
    [[ ! -e $output ]] ||
        { grep -v '^libfabric:.*fi_getinfo\|ofi_layering_ok' "$output" || true; } | tail -n 30
    echo "FAILED: $1"
    exit 1
}

need_mpi() {
    need "$@"
    [[ -e $FI_PROVIDER_PATH/libbbp-fi.so ]] || skip "built without libfabric"
}

need_open_mpi() {
    need_mpi mpicc.openmpi mpirun.openmpi
    compiler=(mpicc.openmpi)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    timeout 60 mpirun.openmpi -n 2 --oversubscribe true >"$output" 2>&1 ||
        skip "mpirun starts nothing here: $(tail -n 1 "$output")"
}

need_mpich() {
    need_mpi mpicc.mpich mpiexec.mpich
    [[ -e $RMEM_MPICH/libmpich.so.12 ]] ||
        skip "MPICH was not built; mpi_channel/mpich/build makes it"
    # GCC takes MPICH's MPI_STATUSES_IGNORE for an array without elements.
    compiler=(mpicc.mpich -Wno-stringop-overflow)
}

use_open_mpi() {
    need_open_mpi
    launcher=("$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-openmpi" --oversubscribe)
}

use_mpich() {
    need_mpich
    launcher=("$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-mpich")
}

with_each_mpi() {
    use_open_mpi
    "$@"
    use_mpich
    [[ -e $FI_PROVIDER_PATH/libbbp-mpich-coll.so ]] ||
        skip "Open MPI's have run, but MPICH's were built without its headers"
    "$@"
}

build() {
    local program
    for program in "$@"; do
        "${compiler[@]}" -O1 -Wall -Wextra -Werror -pthread -I"$RMEM_SOURCE_DIR" \
            "$RMEM_SOURCE_DIR/tests/support/programs/mpi_$program.c" -o "$work/$program"
    done
}

run() {
    local ranks=$1
    shift
    export RMEM_RING=mpi-test-$$
    timeout 100 "${launcher[@]}" -n "$ranks" "$@" >"$output" 2>&1
}

went_over_the_ring() {
    local counted
    counted=$(grep -c 'rank [0-9]*: [1-9][0-9]* packets sent' "$output" || true)
    [[ $counted == "$1" ]] || fail "$2: $counted of $1 ranks have sent packets"
}

# Of any rank of the last run.
least_packets_sent() {
    sed -nE 's/.*rank [0-9]+: ([0-9]+) packets sent.*/\1/p' "$output" | sort -n | sed -n 1p
}

left_nothing() {
    if compgen -G "/dev/shm/*mpi-test-$$*" >/dev/null; then fail "$1 left something in /dev/shm"; fi
}

good_run() {
    local ranks=$1 what=$2
    shift 2
    echo "--- $what"
    run "$ranks" "$@" || fail "$what"
    went_over_the_ring "$ranks" "$what"
    left_nothing "$what"
}

bad_end() {
    local what=$1
    shift
    echo "--- $what"
    if run 3 "$@"; then fail "$what: the launcher hides that a rank did not end well"; fi
    left_nothing "$what"
}

traffic_on_every_link() {
    local link ranks how
    build traffic threads windows
    for link in direct ring udp; do
        export RMEM_LINK=$link
        for ranks in 2 3 4; do
            good_run $ranks "$ranks ranks on $link" "$work/traffic"
        done
        good_run 3 "3 ranks of several threads on $link" "$work/threads"
        good_run 4 "windows on $link" "$work/windows"
        (($(least_packets_sent) > 100)) || fail "what is put into windows did not go over the ring"
        good_run 4 "windows of several threads on $link" "$work/windows" threads
        for how in die kill; do
            bad_end "a rank on $link: $how" "$work/traffic" $how
        done
    done
    RMEM_LINK=direct good_run 8 "8 ranks" "$work/traffic"
    RMEM_LINK=direct run 1 "$work/windows" || fail "windows of a rank alone"
    RMEM_LINK=direct run 1 "$work/windows" threads || fail "windows of a rank alone, of threads"
    RMEM_LINK=udp RMEM_FAULTS='drop:share=5%' \
        good_run 3 "3 ranks on udp, of whose datagrams 5 % are lost" "$work/traffic"
}
