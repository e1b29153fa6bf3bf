#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: full serial
#
# The README's first command, as a newcomer runs it: from a fresh clone to the table. (The second
# one is what runs this test.)
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

git -C "$RMEM_SOURCE_DIR" rev-parse --git-dir >/dev/null 2>&1 ||
    skip "the sources are no git checkout to clone"
# Others' runs may have been killed before this one.
rings() { (shopt -s nullglob && printf '%s\n' /dev/shm/rmem.bench-*); }
before=$(rings)
git clone --quiet --no-hardlinks "$RMEM_SOURCE_DIR" "$work/rmem"
cd "$work/rmem"
scripts/demo --quick >"$output" 2>&1 || fail "scripts/demo"
grep -q "rank 0 received from rank 3: hello from rank 3" "$output" ||
    fail "rank 0 did not hear from rank 3"
for row in "message of 0 bytes" "message of 4 bytes" "broadcast" "barrier of 4" "the floor"; do
    grep -Eq "^$row.* [0-9]+\.[0-9]+" "$output" || fail "no figure for '$row'"
done
[[ $(rings) == "$before" ]] || fail "left behind: $(rings)"
