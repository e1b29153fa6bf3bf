#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example munet-two-users: two users where we are root, by the lines of its README; else two
# programs of one.
set -euo pipefail
# A /run and a /dev/shm of its own, so that it may have the place where all users look.
if [[ $(id -u) = 0 && -z ${apart:-} ]] && unshare --mount true 2>/dev/null; then
    # shellcheck disable=SC2016  # expanded there
    apart=yes exec unshare --mount bash -c 'mount -t tmpfs -o mode=755 none /run &&
        mount -t tmpfs -o mode=1777 none /dev/shm && export apart && exec bash "$0"' "$0"
fi
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

folder=$work
chmod 711 "$folder"
if [[ -n ${apart:-} ]]; then
    daemon=("$rmem" node --munet)
    socket=/run/rmem/munet.default@0
    umask 077 # root's, as on a careful host
else
    daemon=("$rmem" node --munet --ring "example-$$")
    export RMEM_MUNET=$folder/socket
    socket=$RMEM_MUNET
fi
program=$programs/munet-two-users
as() { # user, command...
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
    else
        "${@:2}"
    fi
}
started=()
at_end() {
    kill "${started[@]}" 2>/dev/null || true
    wait
}

"${daemon[@]}" 2>"$folder/log" &
started+=($!)
await "the daemon" test -S "$socket"
as 61001 test -x "$program" || skip "user 61001 cannot reach $program"
as 61001 "$program" >"$folder/echo" &
await "the first user" grep -q "I am" "$folder/echo"
as 61002 "$program" 0 0 >"$folder/table"
wait $!
cat "$folder/table"
[ "$(grep -c -E '^ +[0-9]+ +[0-9.]+$' "$folder/table")" = 8 ]
