# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What mpirun-bbp-openmpi and mpirun-bbp-mpich share. Sourced by them; installed beside libbbp-fi.so.
#
#   provider                    the folder of libbbp-fi.so: RMEM_PROVIDER_PATH, or where this file is. It is exported for libfabric,
#                               and so is a ring of this run's own, unless RMEM_RING is set
#   complain <sentence>         ends the run with exit code 1
#   launch <program> ...        runs it, removes what was left of the ring, and ends with the program's exit code

complain() {
    echo "${0##*/}: $1" >&2
    exit 1
}

provider=${RMEM_PROVIDER_PATH:-$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")}
[[ -e $provider/libbbp-fi.so ]] || complain "there is no libbbp-fi.so in '$provider'; set RMEM_PROVIDER_PATH to its folder"
export FI_PROVIDER_PATH=$provider
export RMEM_RING=${RMEM_RING:-mpi-$$}
# They are the launcher's to give.
unset RMEM_RANK RMEM_RANKS

launch() {
    local launcher rmem
    "$@" <&0 &
    launcher=$!
    # What it left is removed after it has ended, also when it was told to end. The terminal's interrupt reaches it by itself.
    trap 'kill -s TERM "$launcher"' TERM
    trap : INT
    local status=1
    while kill -s 0 "$launcher" 2>/dev/null; do
        status=0
        wait "$launcher" || status=$?
    done
    # Ranks that were all killed at once leave their ring to nobody.
    rmem=$(dirname "$(readlink -f "$0")")/rmem
    [[ -x $rmem ]] || rmem=$(command -v rmem || true)
    [[ -z $rmem ]] || "$rmem" clean "$RMEM_RING" >/dev/null 2>&1 || true
    exit "$status"
}
