#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What docs/ shows of the simulation is what it gives: the table, and the data of the figures.
set -euo pipefail
cd "$RMEM_SOURCE_DIR"

rmem=$RMEM_BUILD_DIR/tools/rmem
if [[ ! -x $rmem ]]; then
    echo "skipped: the rmem command is not built"
    exit 77
fi
simulator/pictures/run --check --build "$RMEM_BUILD_DIR"

guide=docs/guide/simulator.md
missing=0
# The notes, from the last column on, are for the terminal.
table=$("$rmem" sim paper | awk 'NR == 1 { notes = index($0, "note") }
    { line = substr($0, 1, notes - 1); sub(/ *$/, "", line); print line }')
[[ $(wc -l <<<"$table") -ge 35 ]] || { echo "FAILED: the table is short: $table"; exit 1; }
while IFS= read -r line; do
    if ! grep -qxF -e "$line" "$guide"; then
        echo "FAILED: $guide has another line than: $line"
        missing=1
    fi
done <<<"$table"
exit $missing
