#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check plain
# A program that stores data and then its flag, and one that loads them: in every way that captures
# stores, on every link, also where datagrams are lost, the data is there first. For longer runs the
# first argument is a factor.
# shellcheck source=tests/support/rmem_cc.sh
source "$RMEM_SOURCE_DIR/tests/support/rmem_cc.sh"

factor=${1:-1}
source=$programs/flag_and_data.c
options=(-std=c11 -O2 -Wall -Wextra -Werror)
"${CC:-cc}" "${options[@]}" -I"$RMEM_SOURCE_DIR" -o "$work/plain" "$source" \
    -L"$RMEM_BUILD_DIR/rmem" -lrmem -Wl,-rpath,"$RMEM_BUILD_DIR/rmem"
"$cc" "${options[@]}" -o "$work/instrumented" "$source"

# run <rounds> <way> <program> <option of rmem run>...
run() {
    local rounds=$(($1 * factor)) way=$2 program=$3
    shift 3
    echo "--- $way, $*: $rounds rounds"
    RMEM_STORES=$way "$rmem" run -n 2 "$@" -- "$work/$program" "$rounds" || fail "$way, $*"
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
