/* SPDX-License-Identifier: Apache-2.0 */

/* Figures of two ranks: one-way times, and bandwidth. */
#include "method.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const size_t kLatencySizes[] = {8, 0, 1, 64, 256, 1024, 4096, 16384, 65536};
static const size_t kBandwidthSizes[] = {1 << 20, 1 << 16, 1 << 24, 1 << 26};
#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* A stream's window: some messages, or as many as fit a number of bytes, but two at least. */
#define MOST_WINDOW 32
static const size_t kWindowBytes = (size_t)32 << 20;

/* Two buffers of a message, of which the first word (if it has one) says which message it is. */
struct exchange {
    int rank;
    size_t size;
    unsigned char *out, *in;
    uint64_t number;
};

static struct exchange new_exchange(const struct world* world, size_t size) {
    struct exchange made = {world->rank, size, malloc(size + 8), malloc(size + 8), 0};
    require(made.out != NULL && made.in != NULL, "no memory for the messages");
    memset(made.out, 1, size + 8);
    memset(made.in, 2, size + 8);
    return made;
}

static void end_exchange(struct exchange* exchange) {
    free(exchange->out);
    free(exchange->in);
}

static void send_to(int rank, const void* bytes, size_t size) {
    MPI_Send(bytes, (int)size, MPI_BYTE, rank, 0, MPI_COMM_WORLD);
}
static void receive_from(int rank, void* bytes, size_t size) {
    MPI_Recv(bytes, (int)size, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- Ping-pong: a sample is half of a round trip; the echo is checked */

static void ping_pong(void* with) {
    struct exchange* e = with;
    if (e->rank == 0) {
        ++e->number;
        if (e->size >= sizeof e->number) memcpy(e->out, &e->number, sizeof e->number);
        send_to(1, e->out, e->size);
        receive_from(1, e->in, e->size);
        if (e->size >= sizeof e->number)
            require(memcmp(e->in, &e->number, sizeof e->number) == 0,
                    "the echo differs from the ping");
    } else if (e->rank == 1) {
        receive_from(0, e->in, e->size);
        send_to(0, e->in, e->size);
    }
}

static void latency_of(const struct world* world, size_t size) {
    struct exchange e = new_exchange(world, size);
    const struct figure figure = {"latency", size, 0.5, 0};
    measure(world, &figure, ping_pong, &e);
    end_exchange(&e);
}

/* A message to oneself: nobody is waited for, so that a profiler counts what a message costs and
 * nothing else. */
static void to_oneself(void* with) {
    struct exchange* e = with;
    MPI_Request request;
    ++e->number;
    memcpy(e->out, &e->number, sizeof e->number);
    MPI_Irecv(e->in, (int)e->size, MPI_BYTE, e->rank, 0, MPI_COMM_WORLD, &request);
    send_to(e->rank, e->out, e->size);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(memcmp(e->in, &e->number, sizeof e->number) == 0, "what came is not what was sent");
}

static void self_of(const struct world* world, size_t size) {
    struct exchange e = new_exchange(world, size);
    const struct figure figure = {"self", size, 1, 0};
    measure(world, &figure, to_oneself, &e);
    end_exchange(&e);
}

void latency(const struct world* world) {
    if (world->ranks == 1 && wants(world->options, "self"))
        for_sizes(world, kLatencySizes, 1, self_of);
    if (world->ranks == 2 && wants(world->options, "latency"))
        for_sizes(world, kLatencySizes, COUNT_OF(kLatencySizes), latency_of);
}

/* ---- Bandwidth */

static size_t window_of(size_t size) {
    const size_t fit = size == 0 ? MOST_WINDOW : kWindowBytes / size;
    return fit < 2 ? 2 : fit < MOST_WINDOW ? fit : MOST_WINDOW;
}

/* A window of messages that are sent at once, and the receiver's word that all have come. The
 * receiver checks the first and the last word of each: the last, because it comes last. */
static void stream_window(void* with) {
    struct exchange* e = with;
    const size_t window = window_of(e->size), last = e->size - sizeof e->number;
    MPI_Request requests[MOST_WINDOW];
    MPI_Status statuses[MOST_WINDOW];
    uint64_t sum = 0;
    if (e->rank == 0) {
        ++e->number;
        memcpy(e->out, &e->number, sizeof e->number);
        memcpy(e->out + last, &e->number, sizeof e->number);
        for (size_t i = 0; i < window; ++i)
            MPI_Isend(e->out, (int)e->size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall((int)window, requests, statuses);
        receive_from(1, &sum, sizeof sum);
        require(sum == 2 * window * e->number, "the stream arrived damaged");
    } else if (e->rank == 1) {
        for (size_t i = 0; i < window; ++i) {
            uint64_t ends[2];
            receive_from(0, e->in, e->size);
            memcpy(&ends[0], e->in, sizeof ends[0]);
            memcpy(&ends[1], e->in + last, sizeof ends[1]);
            sum += ends[0] + ends[1];
        }
        send_to(0, &sum, sizeof sum);
    }
}

/* `messages`: in one operation. */
static void bandwidth_of(const struct world* world, const char* name, size_t size, size_t messages,
                         operation* op) {
    require(size >= 2 * sizeof(uint64_t), "a stream's messages have 16 bytes or more");
    struct exchange e = new_exchange(world, size);
    const struct figure figure = {name, size, 1.0 / (double)messages, 0};
    if (world->rank != 0) {
        for (int phase = 0; phase < 2; ++phase) follow(1, op, &e);
    } else {
        const double ns = world->options->seconds * 1e9;
        struct series warm_up = lead(ns * 0.1, 1, op, &e);
        struct series series = lead(ns * 0.9, 1, op, &e);
        print_begin(world, &figure);
        print_series(&figure, &series);
        print_number("mb_per_s", (double)size * 1e3 / (quantile(&series, 0.5) * figure.share));
        print_end();
        free(warm_up.values);
        free(series.values);
    }
    end_exchange(&e);
}

static void stream_of(const struct world* world, size_t size) {
    bandwidth_of(world, "stream", size, window_of(size), stream_window);
}
static void transfer_of(const struct world* world, size_t size) {
    bandwidth_of(world, "transfer", size, 2, ping_pong);
}

void bandwidth(const struct world* world) {
    if (world->ranks != 2 || world->options->rounds != 0) return;
    if (wants(world->options, "stream"))
        for_sizes(world, kBandwidthSizes, COUNT_OF(kBandwidthSizes), stream_of);
    if (wants(world->options, "transfer"))
        for_sizes(world, kBandwidthSizes, COUNT_OF(kBandwidthSizes), transfer_of);
}
