#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full wide
#
# MPI programs that others wrote, as Debian has built them, run over the ring unchanged, and their
# own checks hold: NetPIPE with either MPI, hpcc (linear algebra, transposition, Fourier transform,
# random access, latency), mpi4py.
# shellcheck source=tests/support/mpi.sh
source "$RMEM_SOURCE_DIR/tests/support/mpi.sh"

missing=()
# has <program> <package>: whether it is there; if not, the test ends as skipped after the others
# have run.
has() {
    command -v "$1" >/dev/null || {
        missing+=("$2")
        return 1
    }
}

# All sizes up to 1 MiB, each with NetPIPE's own check of the bytes, then a measurement.
netpipe() {
    good_run 2 "$1 checks bytes" "$1" -i -n 5 -u 1048576 -o "$work/np.out"
    passed=$(grep -c 'Integrity check passed' "$output" || true)
    ((passed > 30)) || fail "$1: $passed sizes have passed its check"
    if grep -q 'Integrity check failed' "$output"; then
        fail "$1: bytes are others than were sent"
    fi
    good_run 2 "$1 measures" "$1" -n 10 -u 1048576 -o "$work/np.out"
    awk '$1 == 1048576 && $2 > 0 { found = 1 } END { exit !found }' "$work/np.out" ||
        fail "$1: no result for 1 MiB"
}

# hpcc_input <rows> <columns>: a problem that takes seconds, on a grid of that size.
hpcc_input() {
    cat <<END
HPLinpack benchmark input file
rmem
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
200          Ns
1            # of NBs
20           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
$1            Ps
$2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
END
}

hpcc_says() { grep -q "$1" hpccoutf.txt || fail "hpcc with $ranks ranks does not say '$1'"; }

hpcc_with() {
    ranks=$(($1 * $2))
    hpcc_input "$1" "$2" >hpccinf.txt
    rm -f hpccoutf.txt
    good_run $ranks "hpcc with $ranks ranks" hpcc
    hpcc_says "CommWorldProcs=$ranks$"
    hpcc_says ' 5 tests completed and passed residual checks'
    hpcc_says ' 1 tests completed and passed residual checks'
    hpcc_says 'Solution Validates'
    hpcc_says 'MPIFFT_maxErr=[0-9.]*e-1[5-9]$'
    hpcc_says 'MaxPingPongLatency_usec=[0-9.]*[1-9]'
    # With more than 4 ranks its random access posts several receives for whatever comes, and ends
    # when it meets a rank's last message before an update in a later one: over any MPI, some
    # updates are missing then.
    ((ranks > 4)) || hpcc_says '^MPIRandomAccess_Errors=0$'
    ((ranks > 4)) || hpcc_says '^Success=1$'
}

export RMEM_LINK=direct
cd "$work"
if has NPmpich2 netpipe-mpich2; then
    # In a process of its own: without MPICH this one alone is skipped.
    (
        use_mpich
        netpipe NPmpich2
    ) || {
        status=$?
        ((status == 77)) || exit "$status"
        missing+=(MPICH)
    }
fi

use_open_mpi
if has NPopenmpi netpipe-openmpi; then netpipe NPopenmpi; fi
if has hpcc hpcc; then
    hpcc_with 2 2
    hpcc_with 2 4
fi
if /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
    good_run 4 "mpi4py passes objects" \
        /usr/bin/python3 "$RMEM_SOURCE_DIR/tests/support/programs/mpi4py_objects.py"
    good_run 8 "mpi4py's own ring" /usr/bin/python3 -m mpi4py.bench ringtest -l 20 -n 100000
    grep -q 'time for 20 loops = .* seconds (8 processes, 100000 bytes)' "$output" ||
        fail "mpi4py's own ring tells no time"
else
    missing+=(python3-mpi4py)
fi
((${#missing[@]} == 0)) || skip "the others have run, but ${missing[*]} is not installed"
