#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# What the launchers say before any rank starts, with programs of either MPI and a launcher of Open
# MPI that only tells how it was called; and what a rank says of an invalid setting.
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
    RMEM_MPIRUN=$work/mpirun "$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-openmpi" "$@" \
        >"$output" 2>&1 || fail "mpirun-bbp-openmpi $*"
}

need_open_mpi
unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM FI_LOG_LEVEL
cat >"$work/mpirun" <<'END'
#!/bin/sh
if [ "$1" = --version ]; then echo 'a fake of open-mpi.org'; fi
env | grep '^OMPI_'
END
chmod +x "$work/mpirun"
mpicc.openmpi "$RMEM_SOURCE_DIR/tests/support/programs/mpi_inside.c" -o "$work/of_openmpi"
many=$(($(nproc) + 1))

called -n "$many" "$work/of_openmpi" -n 1
says "$many ranks share $(nproc) processors"
says 'OMPI_MCA_rmaps_base_oversubscribe=1'
((EUID != 0)) || says 'OMPI_ALLOW_RUN_AS_ROOT=1'
called -n 1 "$work/of_openmpi" -n 1000
says_not 'ranks share'
called --host localhost:1 -n "$many" "$work/of_openmpi"
says_not 'OMPI_MCA_rmaps_base_oversubscribe'

# A ring that its ranks have removed is asked for once, and not for the two seconds that ranks may
# take to end.
printf '#!/bin/sh\necho asked >>%s/asked\nexec rmem "$@"\n' "$work" >"$work/rmem"
chmod +x "$work/rmem"
"$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-host" "$work/rmem" "mpi-test-$$" true
(($(wc -l <"$work/asked") == 1)) || fail "the ring is cleaned $(wc -l <"$work/asked") times"

# The launcher may start the program by way of another one.
if command -v mpicc.mpich >/dev/null; then
    mpicc.mpich -Wno-stringop-overflow \
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

launcher=("$RMEM_SOURCE_DIR/mpi_channel/mpirun-bbp-openmpi")
export RMEM_LINK=direct
if RMEM_MPI_TRANSPORT=foo run 1 "$work/of_openmpi"; then fail "there is a transport foo"; fi
says "bbp: RMEM_MPI_TRANSPORT is 'foo', which is no transport; give one of channel, fm"
