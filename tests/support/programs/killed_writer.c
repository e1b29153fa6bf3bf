/* SPDX-License-Identifier: Apache-2.0 */

/* Writes into its node without end, to be killed in the middle of it: words, blocks or bytes by
 * calls, or stores, captured as RMEM_STORES says.
 *
 *     killed-writer words|blocks|bytes|stores */

#include <rmem/rmem.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kMemory = 16384, kBlock = 4096 };

static int failed(const char* what) {
    fprintf(stderr, "killed-writer: %s: %s\n", what, rmem_last_error());
    return EXIT_FAILURE;
}

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "words";
    rmem_node* node = NULL;
    if (rmem_open(&node) < 0) return failed("opening");
    volatile uint8_t* memory = NULL;
    if (strcmp(what, "stores") == 0) {
        void* captured = NULL;
        if (rmem_stores(node, RMEM_STORES_DEFAULT, &captured) < 0) return failed("stores");
        memory = captured;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint32_t value = (uint32_t)(now.tv_nsec ^ getpid());
    uint32_t block[kBlock / sizeof(uint32_t)];
    int code = 0;
    while (code >= 0) {
        value = value * 1664525 + 1013904223;
        const size_t at = (value >> 8) % (kMemory - kBlock);
        const size_t word = at / 4 * 4;
        if (memory != NULL) {
            *(volatile uint32_t*)(memory + word) = value;
            memory[at] = (uint8_t)(value >> 16);
        } else if (strcmp(what, "words") == 0) {
            code = rmem_write_word(node, word, value);
        } else if (strcmp(what, "bytes") == 0) {
            code = rmem_write(node, at, &value, 1 + value % 3);
        } else {
            for (size_t i = 0; i < sizeof block / sizeof *block; ++i) block[i] = value + i;
            code = rmem_write(node, word, block, sizeof block);
        }
        if (code == RMEM_EAGAIN) code = rmem_poll(node);
    }
    return failed("writing");
}
