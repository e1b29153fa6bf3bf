#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A folder with a new heavy include is named, one slow source and a slow machine are not, and
# nothing of it fails a build.
set -euo pipefail
cd "$RMEM_SOURCE_DIR"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# log <factor> <seconds of rmem/wire>...: objects of four folders, and one slow source.
log() {
    local factor=$1 folder at=0
    shift
    echo '# ninja log v5'
    for folder in rmem/base rmem/ring ports/dp; do
        for name in a b c; do
            printf '%d\t%d\t1\t%s\tf\n' 0 $((1000 * factor)) \
                "${folder%%/*}/CMakeFiles/x.dir/${folder#*/}/$name.cpp.o"
        done
    done
    printf '0\t%d\t1\trmem/CMakeFiles/rmem.dir/base/slow.cpp.o\tf\n' $((20000 * factor))
    printf '0\t10\t1\trmem/CMakeFiles/rmem.dir/base/cached.cpp.o\tf\n'
    printf '0\t99000\t1\ttests/CMakeFiles/x_test.dir/rmem/base/x_test.cpp.o\tf\n'
    for seconds in "$@"; do
        printf '0\t%d\t1\trmem/CMakeFiles/rmem.dir/wire/%d.cpp.o\tf\n' \
            $((1000 * factor * seconds)) $((++at))
    done
}

# expect <words> <what>: fails unless the last report is that.
expect() {
    [[ $said == "$1" ]] || { printf 'FAILED: %s:\n%s\n' "$2" "$said"; exit 1; }
}

log 1 1 1 1 >"$work/.ninja_log"
said=$(scripts/lib/compile-times "$work")
expect "$work: 13 objects compiled, 1.0 s each (median)" "a build with nothing heavy"
log 7 1 1 1 >"$work/.ninja_log"
said=$(scripts/lib/compile-times "$work")
expect "$work: 13 objects compiled, 7.0 s each (median)" "the same on a slow machine"

log 1 3 4 5 >"$work/.ninja_log"
said=$(scripts/lib/compile-times "$work")
[[ $said == *"warning: rmem/wire takes 4.0 s an object, 4.0 times the median and not 2:"* ]] || {
    printf 'FAILED: a heavy folder:\n%s\n' "$said"
    exit 1
}

echo '# ninja log v5' >"$work/.ninja_log"
said=$(scripts/lib/compile-times "$work")
expect "$work: nothing was compiled but what ccache had" "a build from the cache"
if scripts/lib/compile-times "$work/none" 2>/dev/null; then
    echo "FAILED: no log is no error"
    exit 1
fi
