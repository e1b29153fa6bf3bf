/* SPDX-License-Identifier: Apache-2.0 */

/* Data before its flag, by plain stores: node 0 fills a block and then stores its flag, round after
 * round; the others load the flag and then the block, which must be of that round or a later one.
 *
 *     rmem run -n 2 --link ring -- flag-and-data [ROUNDS]
 *
 * RMEM_STORES says how the stores are captured. With scan the flag is a sync word. The block has
 * words of one line, of other lines and of other pages. */

#include <rmem/rmem.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { kFlag = 0, kStates = 32768, kReady = 1, kDone = 2, kWords = 8 };
static const size_t kPlaces[kWords] = {8, 60, 64, 4092, 4096, 8192, 20000, 65532};
static const int64_t kPatienceNs = 300000000000; /* longer than the longest run */

static int failed(const char* what) {
    fprintf(stderr, "flag-and-data: %s: %s\n", what, rmem_last_error());
    return EXIT_FAILURE;
}

static size_t state_of(int reader) {
    return kStates + 4 * (size_t)reader;
}

static int await_readers(rmem_node* node, uint32_t state) {
    for (int reader = 1; reader < rmem_nodes(node); ++reader) {
        uint32_t now = rmem_load(node, state_of(reader));
        while (now < state) {
            if (rmem_wait_change(node, state_of(reader), now, &now, kPatienceNs) < 0) return -1;
        }
    }
    return 0;
}

static int store_rounds(rmem_node* node, uint32_t rounds) {
    void* memory = NULL;
    if (rmem_stores(node, RMEM_STORES_DEFAULT, &memory) < 0) return failed("storing");
    if (rmem_set_sync_words(node, kFlag, 4) < 0) return failed("a sync word");
    if (await_readers(node, kReady) < 0) return failed("waiting for the readers");
    char* const bytes = memory;
    for (uint32_t round = 1; round <= rounds; ++round) {
        for (int i = 0; i < kWords; ++i)
            __atomic_store_n((uint32_t*)(bytes + kPlaces[i]), round, __ATOMIC_RELAXED);
        __atomic_store_n((uint32_t*)(bytes + kFlag), round, __ATOMIC_RELEASE);
    }
    if (rmem_flush(node, kPatienceNs) < 0) return failed("the end");
    return await_readers(node, kDone) < 0 ? failed("waiting for the readers") : EXIT_SUCCESS;
}

static int check_rounds(rmem_node* node, uint32_t rounds) {
    const size_t state = state_of(rmem_id(node));
    if (rmem_write_word(node, state, kReady) < 0) return failed("the beginning");
    const char* const bank = rmem_bank(node);
    uint32_t flag = 0, seen = 0, polls = 0;
    while (flag < rounds) {
        const uint32_t now = __atomic_load_n((const uint32_t*)(bank + kFlag), __ATOMIC_ACQUIRE);
        if (now == flag) {
            if (++polls % 64 == 0) sched_yield();
            continue;
        }
        flag = now;
        ++seen;
        for (int i = 0; i < kWords; ++i) {
            const uint32_t word =
                __atomic_load_n((const uint32_t*)(bank + kPlaces[i]), __ATOMIC_RELAXED);
            if ((int32_t)(word - flag) >= 0) continue;
            fprintf(stderr, "flag-and-data: round %u is there, and at %#zx still round %u\n", flag,
                    kPlaces[i], word);
            return EXIT_FAILURE;
        }
    }
    printf("%u rounds, %u flags seen, all of them after their data\n", rounds, seen);
    if (rmem_write_word(node, state, kDone) < 0 || rmem_flush(node, kPatienceNs) < 0)
        return failed("the end");
    return EXIT_SUCCESS;
}

int main(int argc, char** argv) {
    const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
    rmem_node* node = NULL;
    if (rmem_open(&node) < 0) return failed("opening");
    const int status = rmem_id(node) == 0 ? store_rounds(node, rounds) : check_rounds(node, rounds);
    return rmem_close(node) < 0 ? failed("closing") : status;
}
