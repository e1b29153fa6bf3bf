/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks throw a message to and fro; rank 0 prints how long one way takes.
 *
 *     rmem run -n 2 -- pingpong                  8-byte messages, 100000 round trips
 *     rmem run -n 2 -- pingpong --size 1024      larger ones
 *
 * One way is half a round trip. Each round trip looks at the clock once, and the price of that look
 * is in the figures; it is printed, so that it can be taken out again.
 */
#define _POSIX_C_SOURCE 200809L

#include <billboard/bbp.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMaxSize = 1 << 20, kMaxCount = 100 * 1000 * 1000, kClockLooks = 10000 };

struct options {
    size_t size;
    size_t count;
    size_t warmup;
};

static void usage(FILE* to) {
    fputs(
        "Measures how long a message takes from rank 0 to rank 1, as half of a round trip.\n"
        "usage: rmem run -n 2 -- pingpong [options]\n"
        "  -s, --size BYTES    message size, 8 to 1048576 (default 8)\n"
        "  -n, --count N       round trips that are measured (default 100000)\n"
        "  -w, --warmup N      round trips before those (default 10000)\n"
        "  -h, --help          this text\n",
        to);
}

/* Every bbp_ call says what went wrong in a negative code, and in a sentence. */
static int check(int result, const char* call) {
    if (result < 0) {
        fprintf(stderr, "pingpong: %s: %s\n", call, bbp_last_error());
        exit(1);
    }
    return result;
}

static size_t number(const char* option, const char* text, size_t min, size_t max) {
    char* end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max) {
        fprintf(stderr, "pingpong: --%s is a number from %zu to %zu, not '%s'\n", option, min, max,
                text);
        exit(2);
    }
    return (size_t)value;
}

static struct options read_options(int argc, char** argv) {
    static const struct option known[] = {{"size", required_argument, NULL, 's'},
                                          {"count", required_argument, NULL, 'n'},
                                          {"warmup", required_argument, NULL, 'w'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {8, 100000, 10000};
    int option;
    while ((option = getopt_long(argc, argv, "s:n:w:h", known, NULL)) != -1) {
        switch (option) {
            case 's': options.size = number("size", optarg, sizeof(uint64_t), kMaxSize); break;
            case 'n': options.count = number("count", optarg, 1, kMaxCount); break;
            case 'w': options.warmup = number("warmup", optarg, 0, kMaxCount); break;
            case 'h': usage(stdout); exit(0);
            default: usage(stderr); exit(2);
        }
    }
    return options;
}

static void* allocate(size_t bytes) {
    void* memory = calloc(1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "pingpong: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t clock_look_ns(void) {
    const int64_t start = now_ns();
    for (int i = 0; i < kClockLooks; ++i) now_ns();
    return (now_ns() - start) / kClockLooks;
}

static int by_value(const void* a, const void* b) {
    const int64_t x = *(const int64_t*)a;
    const int64_t y = *(const int64_t*)b;
    return (x > y) - (x < y);
}

/* Rank 0: throws, catches, and looks whether what comes back is what it threw. */
static void ping(const struct options* options) {
    char* ball = allocate(options->size);
    int64_t* one_way_ns = allocate(options->count * sizeof *one_way_ns);
    int64_t last = now_ns();
    for (size_t i = 0; i < options->warmup + options->count; ++i) {
        const uint64_t thrown = i;
        uint64_t caught;
        memcpy(ball, &thrown, sizeof thrown);
        check(bbp_send(1, ball, options->size), "bbp_send");
        check(bbp_recv(1, ball, options->size, NULL), "bbp_recv");
        memcpy(&caught, ball, sizeof caught);
        if (caught != thrown) {
            fprintf(stderr, "pingpong: threw %" PRIu64 ", caught %" PRIu64 "\n", thrown, caught);
            exit(1);
        }
        const int64_t now = now_ns();
        if (i >= options->warmup) one_way_ns[i - options->warmup] = (now - last) / 2;
        last = now;
    }

    qsort(one_way_ns, options->count, sizeof *one_way_ns, by_value);
    const size_t last_one = options->count - 1;
    printf("%zu round trips of %zu bytes, every one intact\n", options->count, options->size);
    printf("one way, ns: min %" PRId64 "  p50 %" PRId64 "  p90 %" PRId64 "  p99 %" PRId64
           "  p99.9 %" PRId64 "  max %" PRId64 "\n",
           one_way_ns[0], one_way_ns[last_one / 2], one_way_ns[last_one * 9 / 10],
           one_way_ns[last_one * 99 / 100], one_way_ns[last_one * 999 / 1000],
           one_way_ns[last_one]);
    printf("of which half a look at the clock, ns: %" PRId64 "\n", clock_look_ns() / 2);
    free(one_way_ns);
    free(ball);
}

/* Rank 1: sends back what comes. */
static void pong(const struct options* options) {
    char* ball = allocate(options->size);
    for (size_t i = 0; i < options->warmup + options->count; ++i) {
        size_t size;
        check(bbp_recv(0, ball, options->size, &size), "bbp_recv");
        check(bbp_send(0, ball, size), "bbp_send");
    }
    free(ball);
}

int main(int argc, char** argv) {
    const struct options options = read_options(argc, argv);
    int rank;
    int ranks;
    check(bbp_init(&rank, &ranks), "bbp_init");
    if (ranks != 2) {
        if (rank == 0) {
            fprintf(stderr, "pingpong: takes two ranks, not %d: rmem run -n 2 -- pingpong\n",
                    ranks);
        }
        bbp_finalize();
        return 2;
    }
    if (rank == 0) {
        ping(&options);
    } else {
        pong(&options);
    }
    check(bbp_finalize(), "bbp_finalize");
    return 0;
}
