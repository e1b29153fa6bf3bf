/* SPDX-License-Identifier: Apache-2.0 */

/* Rank 0 stores in every shape, and then writes by a call what its own bank holds; rank 1 compares:
 * what its bank has come by is the same. */

#include "store_shapes.h"

#include <rmem/rmem.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile int one = 1;
unsigned char bytes[256];

enum { HALF = 512 * 1024, DONE = 2 * HALF, ANSWERED = 2 * HALF + 4 };

static rmem_node* node;
static int is_equal = 1, count;

static void require(int is_true, const char* what) {
    if (is_true) return;
    fprintf(stderr, "node %d: %s: %s\n", rmem_id(node), what, rmem_last_error());
    exit(1);
}

static void store(unsigned char* memory) {
    for (const shape* each = __start_shapes; each < __stop_shapes; ++each, ++count) {
        each->store(memory + (size_t)count * SLOT);
        sched_yield(); /* publishes the last one */
        unsigned char own[SLOT];
        for (int i = 0; i < SLOT; ++i) own[i] = memory[count * SLOT + i];
        while (rmem_write(node, HALF + (size_t)count * SLOT, own, SLOT) == RMEM_EAGAIN)
            rmem_poll(node);
    }
}

static void compare(const unsigned char* bank) {
    for (const shape* each = __start_shapes; each < __stop_shapes; ++each, ++count) {
        const unsigned char* const came = bank + (size_t)count * SLOT;
        int differs = -1, stored = 0;
        for (int i = SLOT; i-- > 0;) {
            stored |= came[HALF + i];
            if (came[i] != came[HALF + i]) differs = i;
        }
        if (differs < 0 && stored) continue;
        is_equal = 0;
        if (stored)
            printf("missing: %s, from byte %d on\n", each->name, differs);
        else
            printf("%s stored nothing\n", each->name);
    }
}

int main(void) {
    void* memory = NULL;
    for (int i = 0; i < 256; ++i) bytes[i] = (unsigned char)(i % 255 + 1);
    require(rmem_open(&node) == 0, "opening");
    if (rmem_id(node) == 0) {
        require(rmem_stores(node, RMEM_STORES_INSTRUMENTED, &memory) == 0, "capturing");
        store(memory);
        require(count * SLOT <= HALF, "room");
        require(rmem_flush(node, RMEM_FOREVER) == 0, "flushing");
        rmem_write_word(node, DONE, 1);
        while (rmem_load(node, ANSWERED) == 0)
            rmem_wait_change(node, ANSWERED, 0, NULL, RMEM_FOREVER);
    } else {
        while (rmem_load(node, DONE) == 0) rmem_wait_change(node, DONE, 0, NULL, RMEM_FOREVER);
        compare(rmem_bank(node));
        printf("%d shapes: %s\n", count, is_equal ? "all came" : "not all came");
        rmem_write_word(node, ANSWERED, 1);
    }
    rmem_flush(node, RMEM_FOREVER);
    return rmem_close(node) < 0 || !is_equal;
}
