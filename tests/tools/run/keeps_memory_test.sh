#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctest: check plain
# What the first program of a job writes is there for one that comes when it has written and wants
# to leave, also where nobody waits at opening; one that never comes holds up nobody; and a job that
# is smaller than its ring waits for its own ranks alone, and says so.
# shellcheck source=tests/support/shell.sh
source "$RMEM_SOURCE_DIR/tests/support/shell.sh"

rmem=$RMEM_BUILD_DIR/tools/rmem
if [[ ! -x $rmem || ! -e $RMEM_BUILD_DIR/billboard/libbillboard.so ]]; then
    skip "this build has no rmem command, or no shared libraries"
fi
ring=keeps-$$
at_end() { "$rmem" clean "$ring" >/dev/null 2>&1 || true; }

cat >"$work/late.c" <<'END'
#include <billboard/bbp.h>
#include <rmem/rmem.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, rmem_last_error());
    return 1;
}

/* late FILE: rank 0 makes the file when it has written; rank 1 opens when it is there. */
static int memory(const char* file) {
    rmem_node* node;
    const int is_late = access(file, F_OK) == 0 || strcmp(getenv("RMEM_RANK"), "0") != 0;
    while (is_late && access(file, F_OK) != 0) usleep(1000);
    if (rmem_open(&node) < 0) return failed("opening");
    if (is_late) {
        if (rmem_wait_change(node, 0x100, 0, NULL, 30000000000) < 0) return failed("waiting");
        if (rmem_load(node, 0x200) != 1200) return failed("the data");
    } else {
        if (rmem_write_word(node, 0x200, 1200) < 0 || rmem_write_word(node, 0x100, 1) < 0)
            return failed("writing");
        if (rmem_flush(node, RMEM_FOREVER) != RMEM_ALONE) return failed("a flush with nobody");
        close(open(file, O_CREAT | O_WRONLY, 0600));
    }
    return rmem_close(node) < 0;
}

int main(int argc, char** argv) {
    int ranks = 0;
    if (argc == 2) return memory(argv[1]);
    if (bbp_init(NULL, &ranks) < 0 || ranks != 3 || bbp_barrier() < 0) return failed("messages");
    rmem_node* node;
    if (rmem_open(&node) < 0) return failed("the memory");
    return rmem_close(node) < 0 || bbp_finalize() < 0;
}
END
"${CC:-cc}" -D_DEFAULT_SOURCE -std=c11 -O2 -Wall -Wextra -Werror -I"$RMEM_SOURCE_DIR" \
    -o "$work/late" "$work/late.c" -L"$RMEM_BUILD_DIR/rmem" -L"$RMEM_BUILD_DIR/billboard" \
    -lbillboard -lrmem -Wl,-rpath,"$RMEM_BUILD_DIR/rmem:$RMEM_BUILD_DIR/billboard"

for link in direct ring udp fabric; do
    RMEM_AWAIT=none "$rmem" run -n 2 --link "$link" -- "$work/late" "$work/$link" ||
        fail "on $link the memory went with the first program"
    rm "$work/$link"
    RMEM_AWAIT=none timeout 60 "$rmem" run --link "$link" -n 1 "$work/late" "$work/$link" : \
        -n 1 true || fail "on $link a program waits for one that has ended"
done

"$rmem" make "$ring" -n 4 --link ring >/dev/null
"$rmem" run -n 3 --ring "$ring" -- "$work/late" 2>"$output" ||
    fail "a job of 3 in a ring of 4"
grep -q "has 4 ranks, this job 3: rank 3 stays empty" "$output" ||
    fail "the job does not say which ranks stay empty"
