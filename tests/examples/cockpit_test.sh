#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# The flight ends where it should; a seat that keeps up sees every frame, one that does not says how
# many it missed.
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

example=$RMEM_SOURCE_DIR/examples/cockpit

every_seat_sees_every_frame() {
    ranks "$1" 4 cockpit "$example/flight.csv" --expect "$example/expected_end.csv" --fast \
        --log "$work/log.csv" >"$work/out"
    expect "$work/out" "aircraft: the end is as expected"
    expect "$work/out" "logger: 12000 of 12000 frames seen, 0 missed"
    expect "$work/out" "monitor: alarms changed 2 times"
    expect "$work/out" " BANK"
    # Each frame stands in the log once, in order, and the last one is where the aircraft says it
    # is.
    awk -F, 'NR > 1 && $1 != NR - 1 { exit 1 } END { exit NR != 12001 }' "$work/log.csv" ||
        fail "the log does not hold the frames 1 to 12000 in order"
    [[ $(tail -n 1 "$work/log.csv") == 12000,120.00,231.84* ]]
}

seen_and_missed_are_all() {
    ranks "$1" 4 cockpit "$example/flight.csv" --speed 200 >"$work/out"
    local seen missed
    read -r seen missed < <(
        sed -n 's/.*logger: \([0-9]*\) of 12000 frames seen, \([0-9]*\) missed.*/\1 \2/p' \
            "$work/out")
    ((seen + missed == 12000)) || fail "$seen seen and $missed missed are not 12000"
    expect "$work/out" "aircraft: seat 1 missed $missed frames"
}

tells_a_wrong_end() {
    sed 's/^altitude_m,.*/altitude_m,100,1/' "$example/expected_end.csv" >"$work/wrong.csv"
    refuses "expected 100" \
        direct 1 cockpit "$example/flight.csv" --fast --expect "$work/wrong.csv"
}

names_the_bad_line_of_a_recording() {
    printf '0,0.5,1,0\n1,0.5,one,0\n' >"$work/bad.csv"
    refuses "bad.csv:2: 'one' is not a number" direct 1 cockpit "$work/bad.csv" --fast
}

on_every_link every_seat_sees_every_frame
on_every_link seen_and_missed_are_all
tells_a_wrong_end
names_the_bad_line_of_a_recording
