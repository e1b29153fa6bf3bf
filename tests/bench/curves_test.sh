#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# bench/rivals/curves takes each rhythm's steps, with two ranks and with more, and leaves nothing.
# How fast anything is, is no question here.
set -euo pipefail

fail() {
    echo "FAILED: $1"
    [[ -z ${2:-} ]] || tail -30 "$2"
    exit 1
}

command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
build=$RMEM_BUILD_DIR/bench/rivals
[[ -x $build/rival_rmem ]] || { echo "skipped: there is no $build/rival_rmem"; exit 77; }
curves=(timeout 120 python3 -B "$RMEM_SOURCE_DIR/bench/rivals/curves" --build "$build")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- what it says without measuring
"${curves[@]}" --rhythms waltz >/dev/null 2>&1 && fail "a rhythm that there is not was taken"
"${curves[@]}" --lab >/dev/null 2>&1 && fail "hosts were taken where there is no network"
"${curves[@]}" --only nobody >/dev/null 2>&1 && fail "a system that there is not was taken"
for round in 1 2 3; do
    echo '{"system": "floor", "rhythm": "pingpong", "count": 20, "bytes": 8, "round": '$round', '\
'"p50_ns": 100.0, "hop_ns": 100.0}'
    echo '{"system": "rmem", "rhythm": "pingpong", "count": 20, "bytes": 8, "round": '$round', '\
'"p50_ns": 1'$round'0.0, "hop_ns": 100.0}'
done >"$work/kept"
"${curves[@]}" --tables "$work/kept" >"$work/out"
grep -qF '### pingpong, middling hops' "$work/out" || fail "no table of the state" "$work/out"
grep -qF '| 8 | 100 | 3 | 120.0 | 100.0 | 1.20 |' "$work/out" ||
    fail "the row's medians and ratios" "$work/out"

sed 's/"bytes": 8/"bytes": 64/' "$work/kept" >>"$work/more"
cat "$work/kept" >>"$work/more"
"${curves[@]}" --tables "$work/more" --page "$work/page" >"$work/out"
grep -qF '| 64 | 100 | 3 | 120.0 | 100.0 | 1.20 |' "$work/page/README.md" ||
    fail "the page has no table" "$work/page/README.md"
if command -v gnuplot >/dev/null; then
    grep -q '<svg' "$work/page/pingpong-middling-hops.svg" || fail "no picture" "$work/out"
else
    grep -q 'without pictures' "$work/out" || fail "nothing told of the missing gnuplot" "$work/out"
fi

# --- all rhythms
run() {
    "${curves[@]}" --rounds 1 --seconds 0.001 --only rmem --json "$work/rows" "$@" \
        >"$work/out" 2>&1 || fail "a short run: $*" "$work/out"
}
has() {
    grep "\"system\": \"$1\"" "$work/rows" | grep "\"rhythm\": \"$2\"" | grep "\"bytes\": $3," |
        grep -q "\"p50_ns\": [0-9]*[1-9]" || fail "no row of $1, $2, $3 B" "$work/out"
}
run --sizes 0,8,29,1024,65536
for size in 0 8 29 1024 65536; do
    for rhythm in pingpong stream window; do
        for system in rmem bare_ring_16 bare_ring_64; do has $system $rhythm $size; done
    done
    has floor pingpong $size
    has copy stream $size
done
has rmem burst 29
has rmem asleep 8
has futex asleep 1024
run --ranks 4 --sizes 8,1024
for rhythm in fan_in fan_out all_to_all; do has rmem $rhythm 1024; done
run --over udp --only rmem_udp --sizes 8,1400,131072 --rhythms pingpong,stream
for rhythm in pingpong stream; do
    for system in rmem_udp tcp; do has $system $rhythm 131072; done
done
has udp_floor pingpong 1400

if grep -q 'left behind' "$work/out"; then fail "something was left behind" "$work/out"; fi
