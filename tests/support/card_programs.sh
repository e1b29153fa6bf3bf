# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For the tests of programs as a lab has them for its cards, in C and by a card's header alone, each
# at a unit that `rmem node` keeps: source it.
#
#   compile <interface>           its client
#   keep_nodes <link> <nodes>     a ring of its own, whose node 0 is unit 0, …
#   succeed <words>...            a client with each of these, all at once; what each prints is then
#                                 in $work/0, $work/1, …
#   stop_nodes
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

nodes=()
rings=0
stop_nodes() {
    for node in "${nodes[@]}"; do
        kill "$node" || true
        wait "$node" || true
    done
    nodes=()
}
at_end() { stop_nodes; }

# See tests/support/programs/card_client.h.
compile() {
    local library=$RMEM_BUILD_DIR/cards/$1 programs=$RMEM_SOURCE_DIR/tests/support/programs
    "${CC:-cc}" -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -I"$RMEM_SOURCE_DIR" \
        -I"$RMEM_SOURCE_DIR/cards/$1" -o "$work/client" "$programs/$1_client.c" \
        "$programs/card_client.c" -L"$library" "-l$1" -Wl,-rpath,"$library" \
        -Wl,-rpath-link,"$RMEM_BUILD_DIR/rmem"
}

export XDG_RUNTIME_DIR=$work RMEM_SIZE=2M RMEM_INTERFACE=lo
export RMEM_GROUP=239.1.2.3:$((10000 + $$ % 20000))

keep_nodes() {
    rings=$((rings + 1))
    for unit in $(seq 0 $(($2 - 1))); do
        "$RMEM_BUILD_DIR/tools/rmem" node --quiet --unit "$unit" --ring "cards-$$-$rings" \
            --link "$1" --nodes "$2" --ranks $(($2 * 2)) --node "$unit" &
        nodes+=($!)
    done
    for unit in $(seq 0 $(($2 - 1))); do
        await "unit $unit" test -s "$work/rmem/unit-$unit"
    done
}

# at_once <words>...: their exit codes are in `codes`.
at_once() {
    local running=() each=0
    codes=()
    for line in "$@"; do
        # shellcheck disable=SC2086  # its words
        timeout -k 5 90 "$work/client" $line >"$work/$each" 2>&1 &
        running+=($!)
        each=$((each + 1))
    done
    for process in "${running[@]}"; do
        local code=0
        wait "$process" || code=$?
        codes+=("$code")
    done
}
succeed() {
    at_once "$@"
    local lines=("$@")
    for each in "${!lines[@]}"; do
        [[ ${codes[each]} -eq 0 ]] || fail "${lines[each]}: $(cat "$work/$each")"
    done
}
