#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check plain
# A program that stores data and then its flag, and one that loads them: in every way that captures
# stores, on every link, also where datagrams are lost, the data is there first. For longer runs the
# first argument is a factor.
set -euo pipefail

cc=$RMEM_BUILD_DIR/rmem/rmem-cc
rmem=$RMEM_BUILD_DIR/tools/rmem
if [[ ! -x $cc || ! -x $rmem || ! -e $RMEM_BUILD_DIR/rmem/librmem_instrumented.a ]]; then
    echo "skipped: this build has no rmem command, or no shared libraries"
    exit 77
fi
factor=${1:-1}
source=$RMEM_SOURCE_DIR/tests/support/programs/flag_and_data.c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=(-std=c11 -O2 -Wall -Wextra -Werror)
"${CC:-cc}" "${options[@]}" -I"$RMEM_SOURCE_DIR" -o "$work/plain" "$source" \
    -L"$RMEM_BUILD_DIR/rmem" -lrmem -Wl,-rpath,"$RMEM_BUILD_DIR/rmem"
"$cc" "${options[@]}" -o "$work/instrumented" "$source"

# run <rounds> <way> <program> <option of rmem run>...
run() {
    local rounds=$(($1 * factor)) way=$2 program=$3
    shift 3
    echo "--- $way, $*: $rounds rounds"
    RMEM_STORES=$way "$rmem" run -n 2 "$@" -- "$work/$program" "$rounds" || {
        echo "FAILED: $way, $*"
        exit 1
    }
}

loss=(--link udp --faults 'seed=3;drop:share=1%')
run 1000000 exact plain --link direct
for link in ring udp; do
    if [[ $(uname -m) == x86_64 ]]; then run 1000 exact plain --link "$link"; fi
    run 100000 instrumented instrumented --link "$link" --timing none
    run 1000000 scan plain --link "$link" --timing none
done
if [[ $(uname -m) == x86_64 ]]; then run 1000 exact plain "${loss[@]}"; fi
run 100000 instrumented instrumented "${loss[@]}"
run 1000000 scan plain "${loss[@]}"
