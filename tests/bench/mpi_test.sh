#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# bench/mpi/run judges its figures as it says, and measures on this machine: a short round of Open
# MPI over the ring, over the provider that does nothing, and over its own shared memory.
set -euo pipefail

fail() {
    echo "FAILED: $1"
    [[ -z ${2:-} ]] || tail -30 "$2"
    exit 1
}

command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
python3 -B "$RMEM_SOURCE_DIR/tests/bench/mpi_report_test.py" || fail "the judgement"

run=(python3 -B "$RMEM_SOURCE_DIR/bench/mpi/run" --build "$RMEM_BUILD_DIR")
"${run[@]}" --help | grep -e '--quick' >/dev/null || fail "--help"
if "${run[@]}" --only nothing >/dev/null 2>&1; then fail "a scene that there is not was taken"; fi

for needed in mpirun.openmpi "$RMEM_BUILD_DIR/bench/mpi/mpi-figures-openmpi" \
    "$RMEM_BUILD_DIR/bench/mpi/libnull-fi.so"; do
    command -v "$needed" >/dev/null || [[ -e $needed ]] || {
        echo "skipped: there is no $needed"
        exit 77
    }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 \
    mpirun.openmpi -n 2 --oversubscribe true >"$work/out" 2>&1; then
    echo "skipped: mpirun starts nothing here: $(tail -1 "$work/out")"
    exit 77
fi

"${run[@]}" --quick --only latency,rate,bandwidth \
    --variants openmpi-bbp,openmpi-null,openmpi-vader \
    --json "$work/figures" >"$work/out" || fail "a quick run" "$work/out"
for variant in openmpi-bbp openmpi-null openmpi-vader; do
    grep -q "\"figure\": \"latency\".*\"variant\": \"$variant\"" "$work/figures" ||
        fail "no latency of $variant" "$work/out"
done
for figure in stream rate; do
    grep -q "\"figure\": \"$figure\".*\"variant\": \"openmpi-bbp\"" "$work/figures" ||
        fail "no $figure over the ring" "$work/out"
done
grep -q '^8 B one way / Open MPI.s vader *openmpi-bbp ' "$work/out" ||
    fail "no line for a target" "$work/out"
