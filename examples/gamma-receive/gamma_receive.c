/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The synchronous receive of the GAMMA paper (section 3.1), and what it measures: two nodes throw a
 * message to and fro.
 *
 *     rmem run -n 2 -- gamma-receive             latency, the throughput curve, n_1/2
 *     rmem run -n 2 -- gamma-receive --size 64   one size
 *
 * To wait for a message from port P, a process issues gamma_wait(P, 1); the receiver handler of P
 * issues gamma_signal(P) when it has come. Throughput is, as in the paper, the message's size by
 * the time of one way, half a round trip.
 */
#include <gamma/libgamma.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPort = 5, kMaxSize = 1 << 20, kMaxCount = 100 * 1000 * 1000 };

struct options {
    unsigned long size; /* 0: the curve */
    unsigned long count;
};

static unsigned char* in;
static unsigned char* out;

/* The receiver handler. */
static void message_came(void) {
    gamma_signal(kPort);
}

/* The error handler. */
static void error_came(void) {
    fprintf(stderr, "gamma-receive: port %d: %s\n", gamma_active_port, gamma_strerror(gamma_errno));
    gamma_sigerr(kPort);
}

static int check(int result, const char* call) {
    if (result < 0) {
        fprintf(stderr, "gamma-receive: %s: %s\n", call, gamma_last_error());
        exit(1);
    }
    return result;
}

static void usage(FILE* to) {
    fputs(
        "The paper's synchronous receive, between two nodes: latency, throughput, n_1/2.\n"
        "usage: rmem run -n 2 -- gamma-receive [options]\n"
        "  -s, --size BYTES    one size, 1 to 1048576 (default: the throughput curve)\n"
        "  -n, --count N       round trips of each size (default 20000; fewer of long messages)\n"
        "  -h, --help          this text\n",
        to);
}

static unsigned long number(const char* option, const char* text, unsigned long max) {
    char* end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > max) {
        fprintf(stderr, "gamma-receive: --%s is a number from 1 to %lu, not '%s'\n", option, max,
                text);
        exit(2);
    }
    return value;
}

static struct options read_options(int argc, char** argv) {
    static const struct option known[] = {{"size", required_argument, NULL, 's'},
                                          {"count", required_argument, NULL, 'n'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {0, 20000};
    int option;
    while ((option = getopt_long(argc, argv, "s:n:h", known, NULL)) != -1) {
        switch (option) {
            case 's': options.size = number("size", optarg, kMaxSize); break;
            case 'n': options.count = number("count", optarg, kMaxCount); break;
            case 'h': usage(stdout); exit(0);
            default: usage(stderr); exit(2);
        }
    }
    return options;
}

static unsigned char* allocate(size_t bytes) {
    unsigned char* memory = calloc(1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "gamma-receive: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

static void throw_and_catch(unsigned long size, unsigned char mark) {
    /* Written as it is read again: a short message is one word. */
    const unsigned long long word = mark * 0x0101010101010101ULL;
    memcpy(out, &word, size < sizeof word ? size : sizeof word);
    if (size > sizeof word) out[size - 1] = mark;
    check(gamma_send_flowctl(kPort, out, size), "gamma_send_flowctl");
    check(gamma_wait(kPort, 1), "gamma_wait");
    if ((unsigned long)gamma_msglen != size || in[0] != mark || in[size - 1] != mark) {
        fprintf(stderr, "gamma-receive: threw %lu bytes marked %d, caught %ld marked %d and %d\n",
                size, mark, gamma_msglen, in[0], in[size - 1]);
        exit(1);
    }
}

static void catch_and_throw(unsigned long size) {
    check(gamma_wait(kPort, 1), "gamma_wait");
    check(gamma_send_flowctl(kPort, in, size), "gamma_send_flowctl");
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a;
    const double y = *(const double*)b;
    return (x > y) - (x < y);
}

/* One way in microseconds: half of the median round trip, since others use the machine too. A look
 * at the clock is in it. */
static double one_way_us(unsigned long size, unsigned long count) {
    const unsigned long long budget = 64ULL << 20; /* bytes each way */
    unsigned long rounds = count;
    if ((unsigned long long)rounds * size > budget) rounds = (unsigned long)(budget / size);
    double* one_way = (double*)(void*)allocate(rounds * sizeof *one_way);
    const unsigned long warm_up = rounds / 10;
    check(gamma_sync(), "gamma_sync");
    gamma_time_t last = gamma_time();
    for (unsigned long i = 0; i < warm_up + rounds; ++i) {
        if (gamma_my_node() == 0) {
            throw_and_catch(size, (unsigned char)(i + 1));
        } else {
            catch_and_throw(size);
        }
        const gamma_time_t now = gamma_time();
        if (i >= warm_up) one_way[i - warm_up] = gamma_time_diff(last, now) / 2;
        last = now;
    }
    qsort(one_way, rounds, sizeof one_way[0], by_value);
    const double median = one_way[rounds / 2];
    free(one_way);
    return median;
}

/* The size at which half of the largest throughput is reached, between those measured. */
static double half_power(const unsigned long* sizes, const double* throughput, int n, double most) {
    for (int i = 1; i < n; ++i) {
        if (throughput[i] < most / 2) continue;
        const double step = (most / 2 - throughput[i - 1]) / (throughput[i] - throughput[i - 1]);
        return (double)sizes[i - 1] + step * (double)(sizes[i] - sizes[i - 1]);
    }
    return 0;
}

static void curve(const struct options* options) {
    static const unsigned long sizes[] = {1,    8,     16,    32,     64,     96,   128,
                                          192,  256,   384,   512,    1024,   1500, 3000,
                                          6000, 16384, 65536, 262144, 1048576};
    enum { kSizes = sizeof sizes / sizeof sizes[0] };
    double throughput[kSizes];
    double most = 0;
    const int is_first = gamma_my_node() == 0;
    if (is_first) printf("%10s %12s %12s\n", "bytes", "one way, us", "MB/s");
    for (int i = 0; i < kSizes; ++i) {
        const double us = one_way_us(sizes[i], options->count);
        throughput[i] = (double)sizes[i] / us;
        if (throughput[i] > most) most = throughput[i];
        if (is_first) printf("%10lu %12.3f %12.1f\n", sizes[i], us, throughput[i]);
    }
    if (!is_first) return;
    printf(
        "r_max %.1f MB/s, n_1/2 %.0f bytes (GAMMA 0.4 on Fast Ethernet: 12.2 MB/s, 192 bytes, 12.7 "
        "us)\n",
        most, half_power(sizes, throughput, kSizes, most));
}

int main(int argc, char** argv) {
    const struct options options = read_options(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0); /* each line is seen at once, in a pipe too */
    check(gamma_init(2, argc, argv), "gamma_init");
    const unsigned long most = options.size == 0 ? kMaxSize : options.size;
    in = allocate(most);
    out = allocate(most);
    check(gamma_setport(kPort, (unsigned char)gamma_my_par_pid(), 1 - gamma_my_node(), kPort,
                        message_came, error_came, in, (int)most),
          "gamma_setport");
    check(gamma_sync(), "gamma_sync");
    if (options.size == 0) {
        curve(&options);
    } else {
        const double us = one_way_us(options.size, options.count);
        if (gamma_my_node() == 0)
            printf("%lu bytes: one way %.3f us, %.1f MB/s\n", options.size, us,
                   (double)options.size / us);
    }
    check(gamma_sync(), "gamma_sync");
    check(gamma_exit(), "gamma_exit");
    free(in);
    free(out);
    return 0;
}
