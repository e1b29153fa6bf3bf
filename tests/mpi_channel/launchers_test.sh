#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# What the launchers say before any rank starts, with programs of either MPI and a launcher of Open
# MPI that only tells how it was called, also of parts of rmem that were not built; that the last
# thing said is why a rank cannot take part: an invalid setting, or that a process was started by
# MPI_Comm_spawn.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

# says <words>; says_not <words>: the last run
says() { grep -qF -- "$1" "$output" || fail "nobody says: $1"; }
says_not() { if grep -qF -- "$1" "$output"; then fail "somebody says: $1"; fi; }

# refuses <launcher> <argument>...
refuses() {
    local status=0
    "$RMEM_SOURCE_DIR/mpi_channel/$1" "${@:2}" >"$output" 2>&1 || status=$?
    ((status == 1)) || fail "$*: exit code $status, not 1"
}

# called <argument>...: how mpirun was
called() {
    PATH=$work/fake:$PATH "$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-openmpi" "$@" \
        >"$output" 2>&1 || fail "mpirun-bbp-openmpi $*"
}

need_open_mpi
unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM FI_LOG_LEVEL
mkdir "$work/fake" "$work/deaf"
cat >"$work/fake/mpirun.openmpi" <<'END'
#!/bin/sh
if [ "$1" = --version ]; then echo 'a fake of open-mpi.org'; fi
env | grep '^OMPI_'
END
chmod +x "$work/fake/mpirun.openmpi"
build inside
mv "$work/inside" "$work/of_openmpi"
many=$(($(nproc) + 1))

called -n "$many" "$work/of_openmpi" -n 1
says "$many ranks share $(nproc) processors"
says 'OMPI_MCA_rmaps_base_oversubscribe=1'
((EUID != 0)) || says 'OMPI_ALLOW_RUN_AS_ROOT=1'
called -n 1 "$work/of_openmpi" -n 1000
says_not 'ranks share'
called --host localhost:1 -n "$many" "$work/of_openmpi"
says_not 'OMPI_MCA_rmaps_base_oversubscribe'

# Who makes windows is only proposed.
says 'OMPI_MCA_osc=pt2pt,rdma,sm'
OMPI_MCA_osc=sm,rdma called -n 1 "$work/of_openmpi"
says 'OMPI_MCA_osc=sm,rdma'

# Of a build without the packages of the MPIs, and of one without libfabric's.
mkdir "$work/parts"
cp "$FI_PROVIDER_PATH/libbbp-fi.so" "$work/parts"
FI_PROVIDER_PATH=$work/parts called -n 1 "$work/of_openmpi"
says "in '$work/parts' there is no openmpi/mca_coll_bbp.so: without it Open MPI has no"
says 'install libopenmpi-dev, then configure, build and install rmem again'
says_not 'libmpich-dev'
called -n 1 "$work/of_openmpi"
says_not 'without it'
rm "$work/parts/libbbp-fi.so"
FI_PROVIDER_PATH=$work/parts refuses mpirun-bbp-openmpi -n 1 "$work/of_openmpi"
says "in '$RMEM_SOURCE_DIR/mpi_channel' there is no libbbp-fi.so:"
says 'without it no MPI program goes over the ring'
says 'install libfabric-dev'

# A ring that its ranks have removed is asked for once, and not for the two seconds that ranks may
# take to end.
printf '#!/bin/sh\necho asked >>%s/asked\nexec rmem "$@"\n' "$work" >"$work/rmem"
chmod +x "$work/rmem"
"$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-host" "$work/rmem" "mpi-test-$$" true
(($(wc -l <"$work/asked") == 1)) || fail "the ring is cleaned $(wc -l <"$work/asked") times"

# A launcher of the MPI that does not end when it is told to, and leaves a rank behind.
cat >"$work/deaf/mpirun.openmpi" <<'END'
#!/bin/sh
if [ "$1" = --version ]; then echo 'a fake of open-mpi.org' && exit; fi
trap '' TERM
setsid sh -c 'echo $$ >"$0.rank"; exec sleep 1000' "${0%/*}" &
wait
END
chmod +x "$work/deaf/mpirun.openmpi"
PATH=$work/deaf:$PATH "$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-openmpi" \
    -n 1 "$work/of_openmpi" >"$output" 2>&1 &
told=$!
until [[ -s $work/deaf.rank ]]; do sleep 0.1; done
kill "$told"
wait "$told" || true
for turn in {1..100}; do
    grep -qsz . "/proc/$(<"$work/deaf.rank")/environ" || break # it is dying, or a zombie
    ((turn < 100)) || fail "a rank was left behind"
    sleep 0.1
done

# The launcher may start the program by way of another one.
if command -v mpicc.mpich >/dev/null; then
    mpicc.mpich -Wno-stringop-overflow -I"$RMEM_SOURCE_DIR" \
        "$RMEM_SOURCE_DIR/tests/support/programs/mpi_inside.c" -o "$work/of_mpich"
    refuses mpirun-bbp-openmpi -n 2 env A=1 "$work/of_mpich"
    advice="run it with mpirun-bbp-mpich"
    says "'$work/of_mpich' was built with MPICH, and Open MPI cannot run it; $advice"
fi
if [[ -e $RMEM_MPICH/libmpich.so.12 ]]; then
    refuses mpirun-bbp-mpich -n 2 "$work/of_openmpi"
    advice="run it with mpirun-bbp-openmpi"
    says "'$work/of_openmpi' was built with Open MPI, and MPICH cannot run it; $advice"
fi

# ends_with <words>: the last line of the last run
ends_with() { [[ $(tail -n 1 "$output") == *"$1"* ]] || fail "it is not the last thing said: $1"; }

last_words() {
    build spawn
    if RMEM_MPI=transport=foo run 2 "$work/spawn"; then fail "there is a transport foo"; fi
    ends_with "bbp: RMEM_MPI: transport is 'foo'; give channel or fm"
    left_nothing "a transport foo"
    # MPICH waits forever for what was spawned: this ends who has spawned it.
    # shellcheck disable=SC2016 # the inner shell's
    printf '#!/bin/sh\n"%s"\nkill "$(cat "$0.spawner")"\n' "$work/spawn" >"$work/spawned"
    chmod +x "$work/spawned"
    # shellcheck disable=SC2016 # the inner shell's
    run 1 bash -c 'echo $$ >"$1.spawner"; exec "$0" "$1"' "$work/spawn" "$work/spawned" || true
    ends_with "bbp: this process was started by MPI_Comm_spawn, which is not supported here"
    left_nothing "MPI_Comm_spawn"
    [[ -z $(ls "$TMPDIR") ]] || fail "${compiler[0]} leaves $(ls "$TMPDIR")"
}

export RMEM_LINK=direct TMPDIR=$work/tmp
mkdir "$TMPDIR"
launcher=("$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-openmpi")
last_words
need_mpich
launcher=("$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-mpich")
last_words
