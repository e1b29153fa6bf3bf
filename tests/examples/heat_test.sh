#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# Any number of ranks finds what one process finds, to the last bit: also more ranks than rows, rows
# that cannot be divided evenly, and rows longer than what a partition holds at once.
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

print_of() { grep -o 'steps, residual .*' "$1"; }

# same_as_serial <link> <ranks> <options of heat>
same_as_serial() {
    local link=$1 count=$2
    shift 2
    "$programs/heat" --serial --picture "$work/serial.pgm" "$@" >"$work/serial"
    ranks "$link" "$count" heat --check --picture "$work/ranks.pgm" "$@" >"$work/ranks"
    expect "$work/ranks" "the serial result is the same to the last bit"
    expect "$work/ranks" "$(print_of "$work/serial")"
    cmp "$work/serial.pgm" "$work/ranks.pgm"
}

any_division_gives_the_same_bits() {
    local count
    for count in 1 2 3 5; do
        same_as_serial "$1" "$count" --rows 37 --columns 41 --steps 200 --residual-every 7
    done
    same_as_serial "$1" 6 --rows 4 --columns 9 --steps 50 --residual-every 1
    same_as_serial "$1" 2 --rows 5 --columns 30000 --steps 5 --residual-every 2
}

stops_at_the_same_residual() {
    same_as_serial "$1" 3 --rows 20 --columns 20 --steps 100000 --residual-every 10 --tolerance 0.01
    if grep -q ' 100000 steps' "$work/ranks"; then fail "the residual never stopped it"; fi
}

on_every_link any_division_gives_the_same_bits
on_every_link stops_at_the_same_residual
"$programs/heat" --help >"$work/help"
expect "$work/help" "--picture"
