#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# The README's first command, as a newcomer runs it: from a fresh clone to the table. (The second
# one is what runs this test.)
set -euo pipefail

if ! git -C "$RMEM_SOURCE_DIR" rev-parse --git-dir >/dev/null 2>&1; then
    echo "skipped: the sources are no git checkout to clone"
    exit 77
fi

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# Others' runs may have been killed before this one.
rings() { (shopt -s nullglob && printf '%s\n' /dev/shm/rmem.bench-*); }
before=$(rings)
git clone --quiet --no-hardlinks "$RMEM_SOURCE_DIR" "$home/rmem"
cd "$home/rmem"
scripts/demo --quick >"$home/output" 2>&1 || {
    cat "$home/output"
    exit 1
}

fail() {
    cat "$home/output"
    echo "scripts/demo: $1"
    exit 1
}
grep -q "rank 0 received from rank 3: hello from rank 3" "$home/output" ||
    fail "rank 0 did not hear from rank 3"
for row in "message of 0 bytes" "message of 4 bytes" "broadcast" "barrier of 4" "the floor"; do
    grep -Eq "^$row.* [0-9]+\.[0-9]+" "$home/output" || fail "no figure for '$row'"
done
[[ $(rings) == "$before" ]] || fail "left behind: $(rings)"
