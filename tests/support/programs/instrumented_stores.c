/* SPDX-License-Identifier: Apache-2.0 */

/* What rmem-cc compiles for instrumented_test.sh: node 0 stores in every way that a program has,
 * node 1 sees that all of it comes, and in order. */

#define _GNU_SOURCE
#include <rmem/rmem.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct map {
    volatile uint32_t flag, answer, slept, mixed;
    volatile uint32_t data[16];
    unsigned char bytes[3];
    uint16_t half;
    uint64_t wide;
    double real;
    char text[40];
    unsigned char block[5000], filled[333];
    _Atomic uint32_t counter;
    _Atomic uint64_t set;
    struct pair {
        int values[20];
    } pair;
    struct two {
        int first, second;
    } two[3];
    struct four {
        long first, second;
    } four;
    uint32_t of_thread[3][256];
    float vector[64];
};

static rmem_node* node;
static struct map* map;
static const int64_t kPatienceNs = 30000000000;

static void fail(const char* what) {
    fprintf(stderr, "node %d: %s (%s)\n", rmem_id(node), what, rmem_last_error());
    exit(1);
}
#define EXPECT(condition) \
    if (!(condition)) fail(#condition)

static void* store_much(void* number) {
    const long t = (long)number;
    for (uint32_t round = 1; round <= 50; ++round) {
        for (int i = 0; i < 256; ++i) map->of_thread[t][i] = round;
    }
    return NULL;
}

static void store_everything(void) {
    unsigned char block[5000];
    for (int i = 0; i < 5000; ++i) block[i] = (unsigned char)(i * 7);
    map->bytes[1] = 7;
    map->half = 0x0809;
    map->wide = 0x0102030405060708;
    map->real = 3.5;
    strcpy(map->text, "stores that travel");
    memcpy(map->block, block, sizeof block);
    memmove(map->block + 100, map->block + 50, 1000);
    memset(map->filled, 9, sizeof map->filled);
    for (int i = 0; i < 10; ++i) atomic_fetch_add(&map->counter, 3);
    uint32_t expected = 30;
    EXPECT(atomic_compare_exchange_strong(&map->counter, &expected, 77));
    EXPECT(!atomic_compare_exchange_strong(&map->counter, &expected, 78));
    atomic_store_explicit(&map->set, 0xFF00, memory_order_release);
    atomic_fetch_or(&map->set, 0x11);
    struct pair pair;
    for (int i = 0; i < 20; ++i) pair.values[i] = i * i;
    map->pair = pair;
    static struct two two = {21, 22};
    static struct four four = {41, 42};
    map->two[1] = two;
    map->four = four;
    map->two[2] = map->two[1];
    for (int i = 0; i < 64; ++i) map->vector[i] = (float)i / 4;
    pthread_t threads[3];
    for (long t = 0; t < 3; ++t) pthread_create(&threads[t], NULL, store_much, (void*)t);
    for (int t = 0; t < 3; ++t) pthread_join(threads[t], NULL);
}

static void expect_everything(void) {
    EXPECT(map->bytes[0] == 0 && map->bytes[1] == 7 && map->bytes[2] == 0);
    EXPECT(map->half == 0x0809 && map->wide == 0x0102030405060708 && map->real == 3.5);
    EXPECT(strcmp(map->text, "stores that travel") == 0);
    unsigned char block[5000];
    for (int i = 0; i < 5000; ++i) block[i] = (unsigned char)(i * 7);
    memmove(block + 100, block + 50, 1000);
    EXPECT(memcmp(map->block, block, sizeof block) == 0);
    for (int i = 0; i < 333; ++i) EXPECT(map->filled[i] == 9);
    EXPECT(atomic_load(&map->counter) == 77 && atomic_load(&map->set) == 0xFF11);
    for (int i = 0; i < 20; ++i) EXPECT(map->pair.values[i] == i * i);
    for (int i = 1; i < 3; ++i) EXPECT(map->two[i].first == 21 && map->two[i].second == 22);
    EXPECT(map->four.first == 41 && map->four.second == 42);
    for (int i = 0; i < 64; ++i) EXPECT(map->vector[i] == (float)i / 4);
    for (int t = 0; t < 3; ++t) {
        for (int i = 0; i < 256; ++i) EXPECT(map->of_thread[t][i] == 50);
    }
}

/* Data before its flag, all along. */
static void run_writer(uint32_t rounds) {
    for (uint32_t round = 1; round <= rounds; ++round) {
        for (int i = 0; i < 16; ++i) map->data[i] = round;
        map->flag = round;
    }
}
static void run_reader(uint32_t rounds) {
    for (uint32_t seen = 0; seen < rounds;) {
        seen = map->flag;
        for (int i = 0; i < 16; ++i) EXPECT((int32_t)(map->data[i] - seen) >= 0);
    }
}

static void await(volatile uint32_t* word, uint32_t value) {
    for (long i = 0; *word != value; ++i) {
        EXPECT(i < 30000);
        usleep(1000);
    }
}

int main(int argc, char** argv) {
    const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
    void* memory = NULL;
    if (rmem_open(&node) < 0 || rmem_stores(node, RMEM_STORES_INSTRUMENTED, &memory) < 0)
        fail("opening");
    map = memory;
    if (rmem_id(node) == 0) {
        await(&map->answer, 1);
        store_everything();
        run_writer(rounds);
        await(&map->answer, 2);
        /* A store, and then nothing for long: no later hook publishes it. */
        map->slept = 1;
        usleep(200000);
        await(&map->answer, 3);
        /* A call of the node comes after the store before it. */
        for (uint32_t i = 1; i <= 1000; ++i) {
            map->data[3] = i;
            while (rmem_write_word(node, offsetof(struct map, mixed), i) == RMEM_EAGAIN)
                rmem_poll(node);
        }
        await(&map->answer, 4);
    } else {
        map->answer = 1;
        run_reader(rounds);
        expect_everything();
        map->answer = 2;
        const uint32_t none = 0;
        EXPECT(rmem_wait_change(node, offsetof(struct map, slept), none, NULL, kPatienceNs) == 0);
        map->data[3] = 0;
        map->answer = 3;
        for (uint32_t seen = 0; seen < 1000;) {
            seen = map->mixed;
            EXPECT((int32_t)(map->data[3] - seen) >= 0 || seen == 0);
        }
        map->answer = 4;
    }
    EXPECT(rmem_flush(node, kPatienceNs) >= RMEM_OK);  // or RMEM_ALONE: the others have left
    uint64_t captured = 0;
    EXPECT(rmem_counter(node, "stores_captured", &captured) == RMEM_OK);
    printf("node %d: all came, in order; %s\n", rmem_id(node),
           captured != 0 ? "captured" : "by plain stores");
    return rmem_close(node) < 0;
}
