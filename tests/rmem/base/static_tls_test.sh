#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check plain
#
# What the libraries keep for each thread has room in programs that load them late: of some 1600
# bytes of static TLS, which a process has for all such libraries, each takes a few. Those that name
# no static TLS are held to the same: their variables may become such.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

readonly most=255
need readelf
readarray -t libraries < <(find "$RMEM_BUILD_DIR" -name 'lib*.so.*' -type f)
((${#libraries[@]} > 0)) || fail "no shared library was found"
failed=0
for library in "${libraries[@]}"; do
    bytes=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
    ((${bytes:-0} <= most)) && continue
    echo "failed: ${library##*/} has $((bytes)) bytes of thread-local variables, of $most"
    failed=1
done
exit "$failed"
