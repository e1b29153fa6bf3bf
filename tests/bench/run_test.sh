#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# bench/run judges as it says, takes every rhythm of every system that is built, and leaves nothing.
# How fast anything is, is no question here.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

need python3
python3 -B "$RMEM_SOURCE_DIR/tests/bench/report_test.py" || fail "the report"
[[ -x $RMEM_BUILD_DIR/bench/bench-rmem ]] || skip "all_benches is not built"
bench() { timeout 300 python3 -B "$RMEM_SOURCE_DIR/bench/run" "$@" --build "$RMEM_BUILD_DIR"; }

# --- what it says without measuring
bench --help | grep "run ports --page" >/dev/null || fail "--help has examples"
refused() {
    local sentence=$1
    shift
    ! bench "$@" >"$work/out" 2>&1 || fail "bench/run $* is refused"
    grep -q -- "$sentence" "$work/out" || fail "bench/run $* says '$sentence'" "$work/out"
}
refused "curves has no waltz" curves --only waltz
refused "there is no nobody" curves --systems nobody
refused "use a network" rivals --lab

# --- a page of what was kept
cat >"$work/kept" <<END
{"date": "1999-01-01", "kernel": "k", "processor": "p", "processors": 2, "load": 0.5, \
"cpus": "0,1", "suite": "curves", "command": "c"}
END
for size in 8 64; do
    for system in floor rmem; do
        echo '{"scene": "pingpong", "rhythm": "pingpong", "count": 20, "bytes": '$size', '\
'"ranks": 2, "more": 0, "round": 1, "system": "'$system'", "p50_ns": 100.0, "hop_ns": 100.0}'
    done
done >>"$work/kept"
bench curves --report "$work/kept" --page "$work/page/page.md" >"$work/out"
grep -qxF '| 64 | 100 | 1 | 100.0 | 100.0 | 1.00 |' "$work/page/page.md" ||
    fail "the page has no table" "$work/page/page.md"
if command -v gnuplot >/dev/null; then
    grep -q '<svg' "$work/page/pingpong-middling-hops.svg" || fail "no picture" "$work/out"
else
    grep -q 'without pictures' "$work/out" || fail "nothing told of the missing gnuplot" "$work/out"
fi

# --- every rhythm
quick() {
    bench "$@" --quick --json "$work/rows" >"$work/out" 2>&1 || fail "a short run: $*" "$work/out"
    ! grep 'left behind' "$work/out" || fail "something was left behind"
}
has() {
    local row="\"rhythm\": \"$2\", \"bytes\": $3, .*\"p50_ns\": [0-9]*[1-9].*\"system\": \"$1\""
    grep -q "$row" "$work/rows" || fail "no row of $1, $2, $3 B" "$work/out"
}
quick curves --systems rmem --sizes 0,8,29,1024,65536
for size in 0 8 29 1024 65536; do
    for rhythm in pingpong stream window; do
        for system in rmem bare_ring_16 bare_ring_64; do has $system $rhythm $size; done
    done
    has floor pingpong $size
    has copy stream $size
done
has rmem burst 29
has futex asleep 1024
quick curves --systems rmem --only fan_in,fan_out,all_to_all --sizes 8,1024
for rhythm in fan_in fan_out all_to_all; do has rmem $rhythm 1024; done
quick curves-udp --systems rmem_udp --only pingpong,stream --sizes 8,192,131072
for system in rmem_udp tcp; do has $system stream 131072; done
has udp_floor pingpong 192
quick rivals --systems rmem
has rmem view 1048576

# --- the ports
quick ports
for system in rmem fm4 fm2 gamma dp; do
    has $system pingpong 8
    has $system stream 8
done
for system in fm4_ring dp_udp gamma_beside; do has $system pingpong 8; done
for system in udp_floor rmem_udp_no_key gamma_udp dp_pool_udp; do has $system stream 1400; done
for system in floor rmem gamma; do has $system barrier 0; done
has fm2_handlers stream 16
has dp both 1500
for system in relay munet munet_14; do has $system relay 8; done
has munet_dma call 65536
has own_windows fan_in 16
grep -q '^| fm1 | ' "$work/out" || fail "no parameters of a curve" "$work/out"
grep -q '^| from message to message ÷ bbp_send | gamma ' "$work/out" || fail "no target" "$work/out"
! command -v valgrind >/dev/null || grep -q '"system": "fm4".*"send": [1-9]' "$work/rows" ||
    fail "no instructions" "$work/out"

# --- our own
quick barriers --ranks 2,3
has paper_direct barrier 0
quick lateness
grep -q '"node1_late_p50_ns": [0-9]' "$work/rows" || fail "no lateness" "$work/rows"
quick crowd --ranks 3
has rmem_ring_scramnet start 0
has rmem_udp_no_key pingpong 8
quick bridge
has bridge_udp_ring relay 4

# --- the MPIs
mpi() { OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun.openmpi "$@"; }
if [[ ! -x $RMEM_BUILD_DIR/bench/bench-openmpi || ! -e $RMEM_BUILD_DIR/bench/libnull-fi.so ]] ||
    ! mpi -n 2 --oversubscribe true >"$work/out" 2>&1; then
    echo "the rest is skipped: no Open MPI starts programs here"
    exit 0
fi
quick mpi --systems openmpi-bbp,openmpi-null,openmpi-vader \
    --only latency,rate,bandwidth,collectives-2
for system in openmpi-bbp openmpi-null openmpi-vader; do has $system pingpong 8; done
has openmpi-bbp barrier 0
for rhythm in bcast bcast_osu; do has openmpi-bbp $rhythm 8; done
has openmpi-bbp window 1024
has openmpi-bbp view 1048576
grep -q "^| 8 B one way ÷ Open MPI's vader | openmpi-bbp " "$work/out" ||
    fail "no target" "$work/out"
