# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of programs whose RFM2g card is served elsewhere (tests/cards/rfm2g).
#
# The program is at node 0, which `rmem serve` has, and its peer at node 1 of the same ring, which
# `rmem node` keeps: the same program, with the library of this host. far() runs the program, of
# whatever system.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

server=
node=
unset RFM2G_SERVER
export XDG_RUNTIME_DIR=$work RMEM_SIZE=1M RMEM_INTERFACE=lo RMEM_NODES=2
export RMEM_GROUP=239.1.2.3:$((10000 + $$ % 20000))
rings=0
stop() {
    for process in $server $node; do
        kill "$process" 2>/dev/null || true
        wait "$process" || true
    done
    server=
    node=
}
at_end() { stop; }

# compile_near: the peer's program.
compile_near() {
    "${CC:-cc}" -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror \
        -I"$RMEM_SOURCE_DIR/cards/rfm2g" -o "$work/near" \
        "$RMEM_SOURCE_DIR/tests/support/programs/rfm2g_lab.c" \
        -L"$RMEM_BUILD_DIR/cards/rfm2g" -lrfm2g -Wl,-rpath,"$RMEM_BUILD_DIR/cards/rfm2g" \
        -Wl,-rpath-link,"$RMEM_BUILD_DIR/rmem"
}

# await_line <file> <regular expression>: until a line of it is there.
await_line() {
    output=$1 await "no line '$2' in $1" grep -sqE "$2" "$1"
}

# serve <link>: both nodes of a ring of its own.
serve() {
    rings=$((rings + 1))
    export RMEM_RING=served-$$-$rings RMEM_LINK=$1
    "$RMEM_BUILD_DIR/tools/rmem" serve --node 0 --listen 127.0.0.1:0 >"$work/served" \
        2>"$work/server" &
    server=$!
    "$RMEM_BUILD_DIR/tools/rmem" node --quiet --node 1 --unit 0 &
    node=$!
    await_line "$work/served" "^node 0 at "
    await_line "$work/rmem/unit-0" RMEM_RING
    RFM2G_SERVER=127.0.0.1:$(sed 's/.* port //' "$work/served")
    export RFM2G_SERVER
}

# both <what> <rounds>
both() {
    timeout -k 5 120 "$work/near" "$1" /dev/rfm2g0 0 "$2" >"$work/at-1" 2>&1 &
    local peer=$!
    far "$1" '\\.\rfm2g1' 1 "$2" >"$work/at-0" 2>&1 || fail "$1: $(cat "$work"/at-? "$work/server")"
    wait "$peer" || fail "$1 of the peer: $(cat "$work/at-1")"
}

play() { # <link> <rounds>
    echo "--- $1"
    serve "$1"
    far transfers '\\.\rfm2g1' || fail "transfers: $(cat "$work/server")"
    both game "$2"
    both mapped "$2"
    both callback "$2"
    stop
    [[ ! -s $work/server ]] || fail "the server says: $(cat "$work/server")"
}

lose_the_server() {
    echo "--- a server that goes away"
    serve direct
    far lost '\\.\rfm2g1' >"$work/lost" 2>"$work/lost-errors" &
    local program=$!
    await_line "$work/lost" "^ready"
    kill -KILL "$server"
    wait "$program" || fail "lost: $(cat "$work/lost-errors")"
    local said="the connection to the node at 127.0.0.1 .* has ended"
    [[ $(grep -c "$said" "$work/lost-errors") -eq 1 ]]
    stop
    "$RMEM_BUILD_DIR/tools/rmem" clean "$RMEM_RING" >/dev/null || true  # where the node has not
    echo "--- no server"
    far transfers '\\.\rfm2g1' >"$work/none" 2>"$work/none-errors" && fail "opened without a server"
    grep -q "^not opened: 10, There is no such RFM2g board" "$work/none"
    grep -q "nothing serves a node at 127.0.0.1 port .*start one there" "$work/none-errors"
    far transfers '\\.\rfm2g0' >"$work/none" 2>"$work/none-errors" && fail "opened unit 0"
    grep -q "units count from 1" "$work/none-errors"
}
