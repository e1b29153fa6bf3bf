#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# bench/ports/run measures every figure of the ports in short rounds, and writes the page of it. How
# fast they are is no question here.
set -euo pipefail

fail() {
    echo "FAILED: $1"
    [[ -z ${2:-} ]] || tail -30 "$2"
    exit 1
}

command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
bench=$RMEM_BUILD_DIR/bench/ports/ports-bench
[[ -x $bench ]] || { echo "skipped: there is no $bench"; exit 77; }
run=(python3 -B "$RMEM_SOURCE_DIR/bench/ports/run" --build "$RMEM_BUILD_DIR")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- what it says without measuring
"$bench" --help | grep 'ports-bench udp-share' >/dev/null || fail "--help has no examples"
"$bench" latency --link none >/dev/null 2>&1 && fail "a link that there is not was taken"
"${run[@]}" --only nothing >/dev/null 2>&1 && fail "a figure that there is not was taken"

cat >"$work/kept" <<END
{"date": "1999-01-01", "kernel": "k", "processor": "p", "processors": 2, "load": 0.5, \
"cpus": "0,1", "command": "c"}
{"scene": "gap", "figure": "gap", "notes": "What it\nmeans."}
{"scene": "gap", "figure": "gap", "system": "a", "bytes": 8, "ns_p10": 90.0, "ns": 100.0, \
"ns_p90": 110.0, "ratio": 1.25, "asked": 1.5, "met": true}
{"scene": "udp-share", "figure": "udp-share", "system": "b", "bytes": 9, "share": 0.5, \
"asked": 0.85, "met": false}
END
"${run[@]}" --report "$work/kept" >"$work/page"
for line in '# The ports, 1999-01-01' '| gap: a, 8 bytes | ≤ 1.50 | 1.25 | yes |' \
    '| udp-share: b, 9 bytes | ≥ 0.85 | 0.50 | no |' \
    '| a | 8 | 100 (90.0–110) | 1.25 | 1.50 | yes |' 'What it means.'; do
    grep -qxF -- "$line" "$work/page" || fail "the page lacks: $line" "$work/page"
done

# --- all of it
"${run[@]}" --quick --timeout 60 --json "$work/rows" --page "$work/page" \
    >"$work/out" 2>"$work/err" || fail "a quick run" "$work/err"
has() {
    grep -q "\"figure\": \"$1\", .*$2" "$work/rows" || fail "no row of $1 with $2" "$work/rows"
}
for system in bbp_send FM_send_4 'FM 2.x' gamma_send dp_write; do
    has latency "\"system\": \"$system\""
    has gap "\"system\": \"$system\""
done
for link in direct ring udp; do
    grep -q "link $link, medians" "$work/rows" || fail "no latency on $link" "$work/rows"
done
for system in bbp_send FM_send 'FM 2.x' gamma_send dp_write; do
    has bandwidth "\"system\": \"$system\""
done
for system in datagrams bbp_send gamma_send dp_write; do
    has udp-share "\"system\": \"$system\""
done
for barrier in floor bbp_barrier gamma_sync; do has barrier "\"barrier\": \"$barrier\""; done
has bandwidth-curve '"bytes": 16384'
has handlers '"system": "FM 2.x"'
has both-ways '"bytes": 1500'
has munet '"message": "mu_send_DMA'
has munet-anatomy '"step": "received, 4 endpoints to 1"'
has flow '"way": "own_windows"'
! command -v valgrind >/dev/null || has instructions '"system": "bbp", "send": [1-9]'
# --- one that does not end in time is ended, and leaves nothing
"${run[@]}" --only flow --rounds 100000 --timeout 1 >/dev/null 2>"$work/err" &&
    fail "a run without end was waited for"
grep -q 'not finished after 1 s' "$work/err" || fail "no reason given" "$work/err"

while read -r ring; do  # other tests' rings have owners that live
    owner=${ring#*bench-}
    kill -0 "${owner%%-*}" 2>/dev/null || fail "$ring was left behind"
done < <(find /dev/shm -name 'rmem*bench-*' -newer "$work/kept")
