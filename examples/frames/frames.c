/* SPDX-License-Identifier: Apache-2.0 */

/* A rig's rhythm, in C: node 0 computes a frame each millisecond and publishes it, the others take
 * each frame when it comes, check that it is whole, and answer. In the memory are
 *
 *     0x000  that the rig stops: an interrupt
 *     0x040  the frame, published
 *     0x400  the answer of node n is at 0x400 + 64 * n
 */

#define _POSIX_C_SOURCE 200809L

#include <rmem/rmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kStop = 0x000, kFrame = 0x040, kAnswers = 0x400, kStride = 64, kWords = 16 };

struct frame {
    uint32_t number;
    uint32_t data[kWords];
};

/* What changes with each frame: the last word. */
static const size_t kNews = kFrame + RMEM_PUBLISHED_BYTES(sizeof(struct frame)) - 4;

static const int64_t kPatienceNs = 5000000000; /* then somebody is gone */
static const int64_t kFrameNs = 1000000;

static int failed(const char* what) {
    fprintf(stderr, "frames: %s: %s\n", what, rmem_last_error());
    return EXIT_FAILURE;
}

/* A write finds no room only while the others are slow to take what was written before. */
static int put(rmem_node* node, size_t offset, uint32_t value) {
    int code;
    while ((code = rmem_write_word(node, offset, value)) == RMEM_EAGAIN) rmem_poll(node);
    return code;
}

static int publish(rmem_node* node, const struct frame* frame) {
    int code;
    while ((code = rmem_publish(node, kFrame, frame, sizeof *frame)) == RMEM_EAGAIN)
        rmem_poll(node);
    return code;
}

static size_t answer_of(int node) {
    return kAnswers + (size_t)node * kStride;
}

static int run_simulator(rmem_node* node, uint32_t frames) {
    const struct timespec pause = {0, kFrameNs};
    uint32_t late = 0;
    for (uint32_t frame = 1; frame <= frames; ++frame) {
        struct frame now = {.number = frame};
        for (uint32_t i = 0; i < kWords; ++i) now.data[i] = frame * kWords + i;
        if (publish(node, &now) < 0) return failed("publishing a frame");
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
    if (put(node, kStop, 1) < 0 || rmem_flush(node, kPatienceNs) < 0)
        return failed("stopping the rig");
    printf("%u frames of %d words, %u answers that took longer than a frame\n", (unsigned)frames,
           kWords, (unsigned)late);
    return EXIT_SUCCESS;
}

static int run_follower(rmem_node* node, uint32_t frames) {
    struct frame frame = {.number = 0};
    uint32_t news = 0;
    if (rmem_watch(node, kStop, 4, RMEM_ANY_WRITE) < 0) return failed("watching");
    while (frame.number != frames) {
        if (rmem_wait_change(node, kNews, news, &news, kPatienceNs) < 0)
            return failed("waiting for a frame");
        /* RMEM_EAGAIN: the next one is coming already, and changes that word. */
        const int code = rmem_snapshot(node, kFrame, &frame, sizeof frame);
        if (code == RMEM_EAGAIN) continue;
        if (code < 0) return failed("taking a frame");
        for (uint32_t i = 0; i < kWords; ++i) {
            if (frame.data[i] == frame.number * kWords + i) continue;
            fprintf(stderr, "frames: frame %u is torn\n", (unsigned)frame.number);
            return EXIT_FAILURE;
        }
        if (put(node, answer_of(rmem_id(node)), frame.number) < 0) return failed("answering");
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
