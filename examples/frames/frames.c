/* SPDX-License-Identifier: Apache-2.0 */

/* A rig's rhythm, in C: node 0 computes a frame each millisecond and publishes it, the others take
 * each frame when it comes, check that it is whole, and answer. Words of the memory:
 *
 *     0x000  the frame's number: the flag, written after the data
 *     0x004  that the rig stops: an interrupt
 *     0x040  the frame's data, kWords words
 *     0x400  the answer of node n is at 0x400 + 64 * n
 */

#define _POSIX_C_SOURCE 200809L

#include <rmem/rmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kFlag = 0x000, kStop = 0x004, kData = 0x040, kAnswers = 0x400, kStride = 64, kWords = 16 };

static const int64_t kPatienceNs = 5000000000; /* then somebody is gone */
static const int64_t kFrameNs = 1000000;

static int failed(const char* what) {
    fprintf(stderr, "frames: %s: %s\n", what, rmem_last_error());
    return EXIT_FAILURE;
}

/* A write finds no room only while the others are slow to take what was written before. */
static int publish(rmem_node* node, size_t offset, const void* from, size_t bytes) {
    int code;
    while ((code = rmem_write(node, offset, from, bytes)) == RMEM_EAGAIN) rmem_poll(node);
    return code;
}

static size_t answer_of(int node) {
    return kAnswers + (size_t)node * kStride;
}

static int run_simulator(rmem_node* node, uint32_t frames) {
    const struct timespec pause = {0, kFrameNs};
    uint32_t late = 0;
    for (uint32_t frame = 1; frame <= frames; ++frame) {
        uint32_t data[kWords];
        for (uint32_t i = 0; i < kWords; ++i) data[i] = frame * kWords + i;
        if (publish(node, kData, data, sizeof data) < 0 ||
            publish(node, kFlag, &frame, sizeof frame) < 0)
            return failed("publishing a frame");
        nanosleep(&pause, NULL);
        for (int n = 1; n < rmem_nodes(node); ++n) late += rmem_load(node, answer_of(n)) != frame;
    }
    for (int n = 1; n < rmem_nodes(node); ++n) {
        uint32_t answer = rmem_load(node, answer_of(n));
        while (answer != frames) {
            if (rmem_wait_change(node, answer_of(n), answer, &answer, kPatienceNs) < 0)
                return failed("waiting for the last answer");
        }
    }
    const uint32_t stop = 1;
    if (publish(node, kStop, &stop, sizeof stop) < 0 || rmem_flush(node, kPatienceNs) < 0)
        return failed("stopping the rig");
    printf("%u frames of %d words, %u answers that took longer than a frame\n", (unsigned)frames,
           kWords, (unsigned)late);
    return EXIT_SUCCESS;
}

static int run_follower(rmem_node* node, uint32_t frames) {
    uint32_t seen = 0;
    if (rmem_watch(node, kStop, 4, RMEM_ANY_WRITE) < 0) return failed("watching");
    while (seen != frames) {
        uint32_t data[kWords];
        if (rmem_wait_change(node, kFlag, seen, &seen, kPatienceNs) < 0)
            return failed("waiting for a frame");
        /* The data came before the flag; a later frame's may have come since. */
        if (rmem_read(node, kData, data, sizeof data) < 0) return failed("reading a frame");
        if (data[0] / kWords < seen) {
            fprintf(stderr, "frames: the flag of frame %u came before its data\n", (unsigned)seen);
            return EXIT_FAILURE;
        }
        if (publish(node, answer_of(rmem_id(node)), &seen, sizeof seen) < 0)
            return failed("answering");
    }
    rmem_interrupt interrupt;
    if (rmem_next_interrupt(node, &interrupt, kPatienceNs) < 0) return failed("waiting to stop");
    printf("stopped by node %u\n", (unsigned)interrupt.origin);
    return EXIT_SUCCESS;
}

int main(int argc, char** argv) {
    if (argc > 2 || (argc == 2 && strspn(argv[1], "0123456789") != strlen(argv[1]))) {
        fprintf(stderr, "usage: rmem run -n NODES -- frames [FRAMES]\n");
        return EXIT_FAILURE;
    }
    const uint32_t frames = argc == 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
    rmem_node* node;
    if (rmem_open(&node) < 0) return failed("opening the node");
    const int result =
        rmem_id(node) == 0 ? run_simulator(node, frames) : run_follower(node, frames);
    rmem_close(node);
    return result;
}
