/* SPDX-License-Identifier: Apache-2.0
 *
 * More ranks than processors, as programs are written: how long they take to start, a broadcast by
 * the first with everybody's answer, a barrier, and a pingpong of the first two while the others
 * wait for a message.
 *
 *     rmem run -n 64 --link ring --timing gt200 -- build/release/bench/crowd
 *     rmem run -n 4 --bind-to-core -- build/release/bench/crowd       each rank on its processor
 */
#define _GNU_SOURCE
#include <billboard/bbp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { kRounds = 301, kTurns = 500, kMostRanks = 256 };

static double times[kRounds];

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void check(int result) {
    if (result >= 0) return;
    fprintf(stderr, "%s\n", bbp_last_error());
    exit(1);
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void print(int rank, const char* what) {
    if (rank != 0) return;
    qsort(times, kRounds, sizeof times[0], compare);
    printf("%s: p10 %.2f, p50 %.2f, p90 %.2f, max %.2f us\n", what, times[kRounds / 10],
           times[kRounds / 2], times[kRounds * 9 / 10], times[kRounds - 1]);
    fflush(stdout);
}

/* From the first's clock before it to the last one's after it. */
static double broadcast(int rank, int ranks) {
    double sent = now_us(), last = 0, at;
    int others[kMostRanks], word = 42;
    size_t size;
    if (rank != 0) {
        check(bbp_recv(0, &word, sizeof word, &size));
        at = now_us();
        check(bbp_send(0, &at, sizeof at));
        return 0;
    }
    for (int r = 1; r < ranks; ++r) others[r - 1] = r;
    check(bbp_mcast(others, ranks - 1, &word, sizeof word));
    for (int r = 1; r < ranks; ++r) {
        check(bbp_recv(BBP_ANY, &at, sizeof at, &size));
        if (at > last) last = at;
    }
    return last - sent;
}

static void bounce(int rank) {
    char bytes[8] = {0};
    size_t size;
    for (int i = 0; i < kTurns; ++i) {
        if (rank == 0) check(bbp_send(1, bytes, sizeof bytes));
        check(bbp_recv(1 - rank, bytes, sizeof bytes, &size));
        if (rank == 1) check(bbp_send(0, bytes, sizeof bytes));
    }
}

int main(void) {
    int rank, ranks;
    const double began = now_us();
    check(bbp_init(&rank, &ranks));
    if (rank == 0) printf("%d ranks: start %.1f ms\n", ranks, (now_us() - began) / 1e3);
    usleep(300000);
    for (int i = 0; i < kRounds; ++i) {
        check(bbp_barrier());
        times[i] = broadcast(rank, ranks);
    }
    print(rank, "broadcast of 4 bytes");
    for (int i = 0; i < kRounds; ++i) {
        const double start = now_us();
        check(bbp_barrier());
        times[i] = now_us() - start;
    }
    print(rank, "barrier");
    usleep(300000);
    if (rank < 2) {
        for (int i = 0; i < kRounds; ++i) {
            const double start = now_us();
            bounce(rank);
            times[i] = (now_us() - start) / (2 * kTurns);
        }
        print(rank, "8 bytes one way, others asleep");
    }
    check(bbp_barrier());
    return bbp_finalize();
}
