#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
#
# A program for RFM2g cards whose node `rmem serve` keeps, as on Windows, and a peer on this host,
# on each link: the sources of rfm2g.dll, compiled for this host.
source "$RMEM_SOURCE_DIR/tests/support/rfm2g_remote.sh"
compile_near
"${CC:-cc}" -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -I"$RMEM_SOURCE_DIR/cards/rfm2g" \
    -c -o "$work/far.o" "$RMEM_SOURCE_DIR/tests/support/programs/rfm2g_lab.c"
"${CXX:-c++}" -o "$work/far" "$work/far.o" "$RMEM_BUILD_DIR/cards/rfm2g/librfm2g_remote.a" -lfmt
far() { timeout -k 5 120 "$work/far" "$@"; }

for link in direct ring udp; do
    play "$link" 100
done
lose_the_server
