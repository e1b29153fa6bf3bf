/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurement of the Fast Messages paper, by its own method (section 4.1): a message goes to
 * and fro 50 times, which gives the one-way latency; 65,535 packets one after the other give the
 * bandwidth; lengths are payload, and 1 MB is 2^20 bytes. From the bandwidths follow t0, r_inf and
 * n_1/2.
 *
 *     rmem run -n 2 -- fm-pingpong
 *     rmem run -n 2 -- fm-pingpong --rounds 5 --packets 1000
 *
 * Both versions of Fast Messages are in one file here, as they may be: FM_extract() is 1.0's,
 * FM_extract(n) 2.x's.
 */
#define _POSIX_C_SOURCE 200809L

#include <fm/fm1.h>
#include <fm/fm2.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kTrips = 50, kPackets = 65535, kRounds = 11, kMaxRounds = 1001, kMaxSizes = 16 };

static const double kMegabyte = 1024 * 1024;

static int received;
static ULONG stream_id;
static char payload[16384], landing[16384];

static void on_four(int a, int b, int c, int d) {
    (void)a, (void)b, (void)c, (void)d;
    ++received;
}
static void on_buffer(void* buf, int size) {
    (void)buf, (void)size;
    ++received;
}
static int on_stream(FM_stream* stream, unsigned sender) {
    unsigned size;
    (void)sender;
    FM_receive(&size, stream, sizeof size);
    FM_receive(landing, stream, size - (unsigned)sizeof size);
    ++received;
    return FM_CONTINUE;
}

/* One way to send and to receive: what is measured. */
struct way {
    const char* name;
    void (*send)(int dest, int size);
    void (*extract)(void);
    int sizes[kMaxSizes]; /* 0: no more */
};

static void send_four(int dest, int size) {
    (void)size;
    FM_send_4(dest, on_four, 1, 2, 3, 4);
}
static void send_buffer(int dest, int size) {
    FM_send(dest, on_buffer, payload, size);
}
static void send_stream(int dest, int size) {
    FM_stream* const stream = FM_begin_message((ULONG)dest, (ULONG)size, stream_id);
    memcpy(payload, &size, sizeof size);
    FM_send_piece(stream, payload, (ULONG)size);
    FM_end_message(stream);
}
static void extract_1(void) {
    FM_extract();
}
static void extract_2(void) {
    FM_extract(~0UL);
}

static const struct way kWays[] = {
    {"FM 1.0, FM_send_4", send_four, extract_1, {16}},
    {"FM 1.0, FM_send", send_buffer, extract_1, {16, 32, 48, 64, 80, 96, 112, 128}},
    {"FM 2.x", send_stream, extract_2, {16, 32, 64, 128, 256, 512, 1024, 2048, 4000, 8000, 16000}},
};

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static void await(const struct way* way, int messages) {
    while (received < messages) way->extract();
    received = 0;
}

/* Microseconds one way. */
static double latency(const struct way* way, int size) {
    const int other = 1 - (int)FM_nodeid;
    const double start = now_us();
    for (int i = 0; i < kTrips; ++i) {
        if (FM_nodeid == 0) way->send(other, size);
        await(way, 1);
        if (FM_nodeid == 1) way->send(other, size);
    }
    return (now_us() - start) / kTrips / 2;
}

/* Microseconds for each packet, until the last has been processed. */
static double gap(const struct way* way, int size, int packets) {
    const double start = now_us();
    if (FM_nodeid == 0) {
        for (int i = 0; i < packets; ++i) way->send(1, size);
        await(way, 1);
    } else {
        await(way, packets);
        way->send(0, 16);
    }
    return (now_us() - start) / packets;
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}
static double median(double* values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

/* A straight line through (sizes, gaps): t0 is where it begins, 1 / slope is r_inf; n_1/2 is the
 * size of half r_inf in the measured bandwidths, between the two sizes around it. */
static void print_metrics(const struct way* way, const double* gaps, int n) {
    double x = 0, y = 0, xx = 0, xy = 0;
    for (int i = 0; i < n; ++i) {
        x += way->sizes[i];
        y += gaps[i];
        xx += (double)way->sizes[i] * way->sizes[i];
        xy += way->sizes[i] * gaps[i];
    }
    const double slope = (n * xy - x * y) / (n * xx - x * x);
    printf("  t0 %.3f us", (y - slope * x) / n);
    if (slope <= 0) {
        printf("; a packet's time does not grow with its size: no r_inf\n");
        return;
    }
    const double half = 0.5 / slope; /* bytes in a microsecond */
    printf(", r_inf %.0f MB/s", 1e6 / slope / kMegabyte);
    for (int i = 0; i < n; ++i) {
        if (way->sizes[i] / gaps[i] < half) continue;
        double size = way->sizes[i];
        if (i > 0) {
            const double below = way->sizes[i - 1] / gaps[i - 1], at = size / gaps[i];
            size = way->sizes[i - 1] + (size - way->sizes[i - 1]) * (half - below) / (at - below);
        }
        printf(", n_1/2 %s%.0f bytes\n", i == 0 ? "at most " : "", size);
        return;
    }
    printf(", n_1/2 above %d bytes\n", way->sizes[n - 1]);
}

static void measure(const struct way* way, int rounds, int packets) {
    static double samples[kMaxRounds];
    double gaps[kMaxSizes];
    int n = 0;
    if (FM_nodeid == 0) printf("%s\n  bytes   latency us      MB/s\n", way->name);
    for (; n < kMaxSizes && way->sizes[n] != 0; ++n) {
        const int size = way->sizes[n];
        latency(way, size); /* warms up */
        for (int i = 0; i < rounds; ++i) samples[i] = latency(way, size);
        const double one_way = median(samples, rounds);
        for (int i = 0; i < rounds; ++i) samples[i] = gap(way, size, packets);
        gaps[n] = median(samples, rounds);
        if (FM_nodeid == 0)
            printf("%7d %12.3f %9.1f\n", size, one_way, size / gaps[n] * 1e6 / kMegabyte);
    }
    if (FM_nodeid == 0 && n > 1) print_metrics(way, gaps, n);
}

static int number(const char* text, int most) {
    const long value = strtol(text, NULL, 10);
    if (value >= 1 && value <= most) return (int)value;
    fprintf(stderr, "fm-pingpong: '%s' is not a number from 1 to %d\n", text, most);
    exit(2);
}

int main(int argc, char** argv) {
    static const struct option known[] = {{"rounds", required_argument, NULL, 'r'},
                                          {"packets", required_argument, NULL, 'p'},
                                          {NULL, 0, NULL, 0}};
    int rounds = kRounds, packets = kPackets, option;
    while ((option = getopt_long(argc, argv, "r:p:", known, NULL)) != -1) {
        switch (option) {
            case 'r': rounds = number(optarg, kMaxRounds); break;
            case 'p': packets = number(optarg, 1 << 24); break;
            default:
                fputs("usage: rmem run -n 2 -- fm-pingpong [--rounds N] [--packets N]\n", stderr);
                return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* each line is seen at once, in a pipe too */
    stream_id = FM_register_handler(FM_ANY_ID, on_stream);
    FM_initialize();
    if (FM_numnodes == 0) return 1; /* it has said why */
    if (FM_numnodes != 2) {
        if (FM_nodeid == 0) fprintf(stderr, "fm-pingpong: takes two ranks, not %lu\n", FM_numnodes);
        FM_finalize();
        return 2;
    }
    for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i) measure(&kWays[i], rounds, packets);
    if (FM_nodeid == 0)
        puts(
            "(the paper, on Myrinet of 1995: 25 us for 4 words, 32 us for 32; t0 4.1 us, r_inf "
            "21.4 MB/s,\n"
            "n_1/2 54 bytes)");
    FM_finalize();
    return 0;
}
