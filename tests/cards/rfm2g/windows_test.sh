#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full
#
# rfm2g.dll: a program of Windows, run by Wine, whose node `rmem serve` has, and a peer on this
# host.
set -euo pipefail

for tool in x86_64-w64-mingw32-g++-posix x86_64-w64-mingw32-gcc-posix wine; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: there is no $tool"
        exit 77
    fi
done
source "$RMEM_SOURCE_DIR/tests/support/rfm2g_remote.sh"
export WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
trap 'stop; wineserver -k || true; wineserver -w || true; rm -rf "$work"' EXIT

dll=$RMEM_BUILD_DIR/rfm2g-windows
cmake -S "$RMEM_SOURCE_DIR/cards/rfm2g/windows" -B "$dll" >"$work/build"
cmake --build "$dll" --parallel 2 >>"$work/build" || fail "$(cat "$work/build")"
cp "$dll/rfm2g.dll" "$work"
imported=$(x86_64-w64-mingw32-objdump -p "$work/rfm2g.dll" | sed -n 's/.*DLL Name: //p' | sort)
[[ $imported == $'KERNEL32.dll\nWS2_32.dll\nmsvcrt.dll' ]] || fail "it needs $imported"

compile_near
x86_64-w64-mingw32-gcc-posix -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror \
    -I"$RMEM_SOURCE_DIR/cards/rfm2g" -o "$work/far.exe" \
    "$RMEM_SOURCE_DIR/tests/support/programs/rfm2g_lab.c" -L"$dll" -l:rfm2gdll_stdc_64.lib
far() { timeout -k 5 120 wine "$work/far.exe" "$@"; }
timeout 120 wine wineboot --init >/dev/null 2>&1

play direct 50
play udp 50
lose_the_server
