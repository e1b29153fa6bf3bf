# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What mpirun-bbp-openmpi and mpirun-bbp-mpich share. Sourced by them; installed beside
# libbbp-fi.so.
#
#   provider                    the folder of libbbp-fi.so: FI_PROVIDER_PATH if that has one, or
#                               where this file is
#   on_host                     what the MPI's daemon is started with on another host, so that
#                               nothing of the ring is left there
#   complain <sentence>         ends the run with exit code 1
#   need_part <file>            fails, and says what is missing and what to do, if the build has
#                               left that part of rmem out
#   program_in <argument>       prints the file of the program that an argument of the launcher
#                               names; fails if it names none
#   demand <MPI> <libraries> <other MPI> <its libraries> <its launcher> <its compiler> <argument>...
#                               ends the run if a program among the arguments was linked with the
#                               other MPI (libraries: patterns)
#   launch <program> ...        becomes it; removes what was left of the ring, and ends with the
#                               program's exit code
#
# Exported: where libfabric finds the provider; a ring of this run's own, unless RMEM_RING is set; a
# longer RMEM_DEAD_TIMEOUT and RMEM_JOIN_TIMEOUT. Each rank is a node of its own, also where several
# share a host.

complain() {
    echo "${0##*/}: $1" >&2
    exit 1
}

parts=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
provider=$parts
[[ ! -e ${FI_PROVIDER_PATH:-}/libbbp-fi.so ]] || provider=$FI_PROVIDER_PATH

need_part() {
    [[ ! -e $provider/$1 ]] || return 0
    echo "${0##*/}: in '$provider' there is no $(grep -F "$1:" "$parts/parts.txt")" >&2
    return 1
}

need_part libbbp-fi.so || complain "if it was built, set FI_PROVIDER_PATH to its folder"
export FI_PROVIDER_PATH=$provider
# Where ranks write why they cannot take part: what an MPI says after that would hide it.
RMEM_LAST_WORDS=$(mktemp) && export RMEM_LAST_WORDS
trap 'rm -f "$RMEM_LAST_WORDS"' EXIT
# Two runs that were begun on different hosts may have the same process number.
[[ -n ${RMEM_RING:-} ]] || printf -v RMEM_RING "mpi-%d-%08x" $$ "$SRANDOM"
export RMEM_RING
# Ranks on other hosts may begin in another folder.
if [[ -n ${RMEM_KEY_FILE:-} ]]; then
    RMEM_KEY_FILE=$(realpath -sm "$RMEM_KEY_FILE")
    export RMEM_KEY_FILE
fi
# The launcher hears of a killed rank at once; on udp silence is more often that of a rank which
# starves on a busy host.
export RMEM_DEAD_TIMEOUT=${RMEM_DEAD_TIMEOUT:-10s}
# Ranks that start slowly are awaited; one that cannot start ends the run by itself.
export RMEM_JOIN_TIMEOUT=${RMEM_JOIN_TIMEOUT:-120s}
# They are the launcher's to give.
unset RMEM_RANK RMEM_RANKS RMEM_NODE RMEM_NODES

rmem=$(dirname "$(readlink -f "$0")")/rmem
[[ -x $rmem ]] || rmem=$(command -v rmem || echo rmem)
# The last words are told where the run was begun.
on_host=(env -u RMEM_LAST_WORDS "$parts/mpirun-bbp-host" "$rmem" "$RMEM_RING")

program_in() {
    local file=$1
    [[ $file == */* ]] || file=$(type -P -- "$file") || return 1
    [[ -f $file && -x $file ]] || return 1
    echo "$file"
}

demand() {
    local mpi=$1 libraries=$2 other=$3 its_libraries=$4 its_launcher=$5 compiler=$6
    local argument file needed remedy
    shift 6
    for argument in "$@"; do
        [[ $argument != -* ]] || continue
        file=$(program_in "$argument") || continue
        needed=$(ldd "$file" 2>/dev/null) || continue # a script, or one without libraries
        if [[ $needed =~ $its_libraries && ! $needed =~ $libraries ]]; then
            remedy="run it with $its_launcher, or build it with $compiler"
            complain "'$argument' was built with $other, and $mpi cannot run it; $remedy"
        fi
    done
}

launch() {
    exec "${on_host[@]:3}" "$@"
}
