#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# A plain MPI program, built with Debian's Open MPI, runs over the ring on every link: what is sent arrives, and it did go over the
# ring; and one whose rank aborts or is killed ends with an error, and leaves nothing behind.
set -euo pipefail

fail() {
    echo "FAILED: $1"
    [[ -z ${2:-} ]] || tail -20 "$2"
    exit 1
}

export RMEM_PROVIDER_PATH=$RMEM_BUILD_DIR/mpi_channel
for needed in mpicc.openmpi mpirun.openmpi; do
    command -v "$needed" >/dev/null || { echo "skipped: there is no $needed"; exit 77; }
done
[[ -e $RMEM_PROVIDER_PATH/libbbp-fi.so ]] || { echo "skipped: built without libfabric"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc.openmpi -O1 -Wall -Wextra -Werror "$RMEM_SOURCE_DIR/tests/support/programs/mpi_traffic.c" -o "$work/traffic"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PATH=$RMEM_BUILD_DIR/tools:$PATH
if ! timeout 60 mpirun.openmpi -n 2 --oversubscribe true >"$work/out" 2>&1; then
    echo "skipped: mpirun starts nothing here: $(tail -1 "$work/out")"
    exit 77
fi
export RMEM_INTERFACE=lo FI_LOG_LEVEL=info FI_LOG_PROV=bbp

# mpirun <ranks> <argument>...: its own ring, so that what is left of it can be found.
run() {
    local ranks=$1
    shift
    export RMEM_RING=mpi-test-$$
    timeout 100 "$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-openmpi" -n "$ranks" --oversubscribe "$work/traffic" "$@" \
        >"$work/out" 2>&1
}

leaves_nothing() {
    if compgen -G "/dev/shm/*mpi-test-$$*" >/dev/null; then fail "$1 left something in /dev/shm"; fi
}

for link in direct ring udp; do
    export RMEM_LINK=$link
    for ranks in 2 3 4; do
        echo "--- $ranks ranks on $link"
        run "$ranks" || fail "$ranks ranks on $link" "$work/out"
        counted=$(grep -c 'rank [0-9]*: [1-9][0-9]* packets sent' "$work/out" || true)
        [[ $counted == "$ranks" ]] || fail "$counted of $ranks ranks have sent packets" "$work/out"
        leaves_nothing "$ranks ranks on $link"
    done
    for how in die kill; do
        echo "--- a rank on $link: $how"
        if run 3 "$how"; then fail "mpirun hides that a rank did not end well" "$work/out"; fi
        leaves_nothing "a rank on $link that was to $how"
    done
done
