/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two programs of two users throw messages to and fro through the daemon of their host: the
 * measurement of the paper's Table 1, round trips by send_DMA for its eight sizes.
 *
 *     rmem node --munet &
 *     sudo -u alice munet-two-users                   waits, and prints its address
 *     sudo -u bob   munet-two-users 0 0               node and endpoint of the other
 *
 * The paper, on two SUN Ultra 1 with Myrinet, had 40 us for 8 bytes and 495 us for 4096.
 */
#define _POSIX_C_SOURCE 200809L

#include <munet/munet.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kLargest = 4096, kBuffer = 1 << 18, kRoundTrips = 1000 };
static const size_t kSizes[] = {8, 64, 128, 256, 512, 1024, 2048, kLargest};

/* Every mu_ call says what went wrong in a negative errno, and in a sentence. */
static int check(int result, const char* call) {
    if (result < 0) {
        fprintf(stderr, "munet-two-users: %s: %s\n", call, mu_last_error());
        exit(1);
    }
    return result;
}

static int receive(mu_endpoint_t* ep, char* text, mu_addr_t* from) {
    int size;
    while ((size = mu_recv(ep, text, kLargest, from)) == -EAGAIN) {
        check(mu_wait(ep, -1), "mu_wait");
    }
    return check(size, "mu_recv");
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Sends back what comes, until an empty message. */
static void echo(mu_endpoint_t* ep) {
    char text[kLargest];
    mu_addr_t from;
    for (int size = receive(ep, text, &from); size > 0; size = receive(ep, text, &from)) {
        check(mu_send_DMA(ep, from, text, (size_t)size), "mu_send_DMA");
    }
}

static void measure(mu_endpoint_t* ep, mu_addr_t to) {
    char out[kLargest];
    char in[kLargest];
    memset(out, 'x', sizeof out);
    printf("%8s %16s\n", "bytes", "round trip, us");
    for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
        const int64_t start = now_ns();
        for (int n = 0; n < kRoundTrips; ++n) {
            memcpy(out, &n, sizeof n);
            check(mu_send_DMA(ep, to, out, kSizes[i]), "mu_send_DMA");
            const int size = receive(ep, in, NULL);
            if ((size_t)size != kSizes[i] || memcmp(in, out, kSizes[i]) != 0) {
                fprintf(stderr, "munet-two-users: something else came back\n");
                exit(1);
            }
        }
        printf("%8zu %16.2f\n", kSizes[i], (double)(now_ns() - start) / kRoundTrips / 1000);
    }
    check(mu_send(ep, to, NULL, 0), "mu_send");
}

int main(int argc, char** argv) {
    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: munet-two-users [node endpoint]\n");
        return 2;
    }
    mu_endpoint_t* ep;
    mu_addr_t own;
    check(mu_create_endpoint(&ep, kBuffer, kBuffer), "mu_create_endpoint");
    check(mu_address(ep, &own), "mu_address");
    if (argc == 1) {
        printf("I am endpoint %d of node %d: munet-two-users %d %d\n", own.ep, own.node, own.node,
               own.ep);
        fflush(stdout);
        echo(ep);
    } else {
        const mu_addr_t to = {atoi(argv[1]), (unsigned char)atoi(argv[2])};
        measure(ep, to);
    }
    check(mu_destroy_endpoint(ep), "mu_destroy_endpoint");
    return 0;
}
