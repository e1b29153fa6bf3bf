#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# `rmem conform` on hosts of the lab, a member on each: with nothing but cards between them, by
# their vendors' interfaces, it finds that no rule is broken.
source "$RMEM_SOURCE_DIR/tests/support/lab.sh"

readonly members=3
export RMEM_SIZE=64K

# members_at <option> <card>: all at once; each prints the same report, but for its card.
members_at() {
    local host jobs=()
    for ((host = 0; host < members; ++host)); do
        (
            export RMEM_RING=$name-${1#--}
            on "$host" "$RMEM_BUILD_DIR/tools/rmem" conform --member "$host" --members $members \
                "$@" --at 4K --rounds 100
        ) >"$output.$host" 2>&1 &
        jobs+=($!)
    done
    for ((host = 0; host < members; ++host)); do
        wait "${jobs[host]}" || {
            cp "$output.$host" "$output"
            fail "member $host by $*"
        }
    done
    grep -q "^conforms: of " "$output.0" || fail "a verdict by $*"
    echo "$(head -n 2 "$output.0" | tail -n 1): $(head -n 1 "$output.0")"
    rm -f "$output".[0-9]*
}

begin_hosts lab $members
help=$("$RMEM_BUILD_DIR/tools/rmem" conform --help)
cards=$(awk '/^ *--/ { option = $1 } / takes it: / { print option, $NF }' <<<"$help")
[[ $cards ]] || fail "cards in the help"
while read -r option card; do members_at "$option" "$card"; done <<<"$cards"
