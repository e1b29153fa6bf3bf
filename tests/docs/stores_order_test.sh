#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check
# Programs of the pages that store plainly send their flag last, whatever compiler and optimisation
# they are built with: their stores are recorded as they travel.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

source=$RMEM_SOURCE_DIR
export PATH=$RMEM_BUILD_DIR/tools:$PATH LD_LIBRARY_PATH=$RMEM_BUILD_DIR/rmem RMEM_STORES=exact
[[ $(uname -m) == x86_64 ]] || skip "stores are captured exactly on x86-64 only"

# The guide's, whose flag is its first word; and the manual's, whose flag follows a double.
awk '/^\/\* cockpit.c/ { on = 1 } /^```/ { on = 0 } on' \
    "$source/docs/guide/memory-in-c.md" >"$work/cockpit.c"
awk '/^\.Ed/ && on { exit } on { gsub(/\\e/, "\\"); print } /^\.Bd -literal$/ { on = 1 }' \
    "$source/docs/man/rmem_stores.3" >"$work/stores.c"
declare -A flag=([cockpit]=0 [stores]=8)

# Rank 1 opens, so that rank 0 does, once all that travels is recorded.
cat >"$work/late" <<'END'
#!/bin/sh
setsid rmem record "$RMEM_RING" -o "$2" --for 60s >"$2.said" 2>&1 &
until [ -s "$2" ]; do sleep 0.02; done
exec "$1" >/dev/null
END
chmod +x "$work/late"

builds=("cc -O2" "cc -O3 -march=native")
command -v clang >/dev/null && builds+=("clang -O2" "clang -O3 -march=native")
for build in "${builds[@]}"; do
    for program in "${!flag[@]}"; do
        read -ra words <<<"$build"
        recorded=$work/$program.rmemrec
        rm -f "$recorded"
        "${words[@]}" -Wall -Wextra -Werror -o "$work/$program" "$work/$program.c" \
            -I"$source" -L"$RMEM_BUILD_DIR/rmem" -lrmem
        rmem run --no-label --link ring -n 1 "$work/$program" : -n 1 "$work/late" \
            "$work/$program" "$recorded"
        until rmem replay "$recorded" --print --json >"$work/writes" 2>"$work/said" &&
            ! grep -q 'not closed' "$work/said"; do sleep 0.1; done
        python3 - "$work/writes" "${flag[$program]}" "$build: $program" <<'END'
import json, sys

writes = [json.loads(line) for line in open(sys.argv[1])]
places = [write["offset"] for write in writes if write.get("rank", write.get("origin")) == 0]
flag = int(sys.argv[2])
assert len(places) >= 2, f"{sys.argv[3]}: {len(places)} writes recorded"
assert places[-1] == flag, f"{sys.argv[3]}: the flag at {flag} comes before data: {places}"
assert flag not in places[:-1], f"{sys.argv[3]}: {places}"
END
    done
done
