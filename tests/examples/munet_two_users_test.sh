#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example munet-two-users: two users where we are root, else two programs of one.
set -euo pipefail
# shellcheck source=tests/support/examples.sh
source "$RMEM_SOURCE_DIR/tests/support/examples.sh"

folder=$work
chmod 711 "$folder"
export RMEM_MUNET=$folder/socket
program=$programs/munet-two-users
as() { # user, command...
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
    else
        "${@:2}"
    fi
}
started=()
end() {
    kill "${started[@]}" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap end EXIT

"$rmem" node --munet --ring "example-$$" 2>"$folder/log" &
started+=($!)
for _ in $(seq 200); do [ -S "$RMEM_MUNET" ] && break; sleep 0.05; done
if ! as 61001 test -x "$program"; then
    echo "skipped: user 61001 cannot reach $program"
    exit 77
fi
as 61001 "$program" >"$folder/echo" &
for _ in $(seq 200); do grep -q "I am" "$folder/echo" && break; sleep 0.05; done
as 61002 "$program" 0 0 >"$folder/table"
wait $!
cat "$folder/table"
[ "$(grep -c -E '^ +[0-9]+ +[0-9.]+$' "$folder/table")" = 8 ]
