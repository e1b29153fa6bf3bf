/* SPDX-License-Identifier: Apache-2.0 */

/* Figures of collective calls.
 *
 * Barrier, Allreduce and Allgather wait for everybody, so they are called one after the other.
 * Bcast and Reduce do not: in a plain loop the root of a Bcast runs ahead, and what would be
 * measured is how often it can send. Therefore two ways:
 *
 *   bcast, reduce  until an answer has come: of the last rank to the root of a Bcast, of the root
 *                  to the last rank after a Reduce. The answer's own time, half of a round trip of
 *                  8 bytes between the same two, is measured before and told (`ack_ns`).
 *   bcast_osu      as the OSU benchmarks do: a barrier, and after it each rank's own time in
 *                  MPI_Bcast; mean over the ranks, and the slowest rank's (`slowest_ns`).
 */
#include "method.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static const size_t kSizes[] = {8, 64, 256, 1024};
static const int kSizeCount = sizeof kSizes / sizeof *kSizes;

struct call {
    const struct world* world;
    size_t size; /* of one rank's part */
    double *in, *out;
    double round;
};

static struct call new_call(const struct world* world, size_t size) {
    require(size >= sizeof(double), "collective calls are measured from 8 bytes on");
    const size_t bytes = size * (size_t)world->ranks;
    struct call made = {world, size, calloc(1, bytes), calloc(1, bytes), 0};
    require(made.in != NULL && made.out != NULL, "no memory for the messages");
    return made;
}
static void end_call(struct call* call) {
    free(call->in);
    free(call->out);
}
static int doubles_of(const struct call* call) {
    return (int)(call->size / sizeof(double));
}
static bool is_root(const struct call* call) {
    return call->world->rank == 0;
}
static bool is_last(const struct call* call) {
    return call->world->rank == call->world->ranks - 1;
}
static int last_rank(const struct call* call) {
    return call->world->ranks - 1;
}

/* ---- Calls that wait for all */

static void barrier(void* with) {
    (void)with;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(void* with) {
    struct call* call = with;
    call->in[0] = ++call->round;
    MPI_Allreduce(call->in, call->out, doubles_of(call), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    require(call->out[0] == call->round * call->world->ranks, "the sum is wrong");
}

static void allgather(void* with) {
    struct call* call = with;
    const int count = doubles_of(call);
    call->in[0] = ++call->round + call->world->rank;
    MPI_Allgather(call->in, count, MPI_DOUBLE, call->out, count, MPI_DOUBLE, MPI_COMM_WORLD);
    require(call->out[count * last_rank(call)] == call->round + last_rank(call), "a part is wrong");
}

/* ---- Calls with an answer */

static void answer(void* with) {
    struct call* call = with;
    double word = 0;
    if (is_last(call)) MPI_Send(&word, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    if (is_root(call))
        MPI_Recv(&word, 1, MPI_DOUBLE, last_rank(call), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void question(void* with) {
    struct call* call = with;
    double word = 0;
    if (is_root(call)) MPI_Send(&word, 1, MPI_DOUBLE, last_rank(call), 2, MPI_COMM_WORLD);
    if (is_last(call)) MPI_Recv(&word, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void question_and_answer(void* with) {
    question(with);
    answer(with);
}

static void broadcast(struct call* call) {
    ++call->round;
    if (is_root(call)) call->in[0] = call->round;
    MPI_Bcast(call->in, (int)call->size, MPI_BYTE, 0, MPI_COMM_WORLD);
    require(call->in[0] == call->round, "the broadcast is wrong");
}

static void answered_broadcast(void* with) {
    broadcast(with);
    answer(with);
}

static void answered_reduce(void* with) {
    struct call* call = with;
    call->in[0] = ++call->round;
    MPI_Reduce(call->in, call->out, doubles_of(call), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (is_root(call))
        require(call->out[0] == call->round * call->world->ranks, "the sum is wrong");
    question(with);
}

static void measure_answered(const struct world* world, const char* name, size_t size,
                             operation* op) {
    struct call call = new_call(world, size);
    const struct figure round_trip = {NULL, 8, 0.5, 0};
    const double ack = measure(world, &round_trip, question_and_answer, &call);
    const struct figure figure = {name, size, 1, ack};
    measure(world, &figure, op, &call);
    end_call(&call);
}

static void bcast_of(const struct world* world, size_t size) {
    measure_answered(world, "bcast", size, answered_broadcast);
}
static void reduce_of(const struct world* world, size_t size) {
    measure_answered(world, "reduce", size, answered_reduce);
}

/* ---- As OSU does */

struct own_time {
    struct call call;
    double spent;
};

static void timed_broadcast(void* with) {
    struct own_time* own = with;
    MPI_Barrier(MPI_COMM_WORLD);
    const double before = now_ns();
    broadcast(&own->call);
    own->spent += now_ns() - before;
}

/* Few, because after the slowest barriers this takes a second. */
#define OWN_BATCH 20

/* A batch, and what it took at each rank: the mean and the most, at rank 0. */
static void one_batch(const struct world* world, struct own_time* own, double* mean, double* most) {
    own->spent = 0;
    for (int i = 0; i < OWN_BATCH; ++i) timed_broadcast(own);
    own->spent /= OWN_BATCH;
    MPI_Reduce(&own->spent, mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&own->spent, most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    *mean /= world->ranks;
}

static void osu_of(const struct world* world, size_t size) {
    struct own_time own = {new_call(world, size), 0};
    static double mean_values[MOST_SAMPLES], most_values[MOST_SAMPLES];
    struct series means = {mean_values, 0}, most = {most_values, 0};
    const double end = now_ns() + world->options->seconds * 1e9;
    for (int goes_on = 1; goes_on;) {
        double mean = 0, slowest = 0;
        one_batch(world, &own, &mean, &slowest);
        means.values[means.count++] = mean;
        most.values[most.count++] = slowest;
        goes_on = now_ns() < end && means.count < MOST_SAMPLES;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    sort(&means);
    sort(&most);
    if (world->rank == 0) {
        const struct figure figure = {"bcast_osu", size, 1, 0};
        print_begin(world, &figure);
        print_series(&figure, &means);
        print_number("batch_p50_ns", quantile(&means, 0.5));
        print_number("batch_p10_ns", quantile(&means, 0.1));
        print_number("slowest_ns", quantile(&most, 0.5));
        print_end();
    }
    end_call(&own.call);
}

static void allreduce_of(const struct world* world, size_t size) {
    struct call call = new_call(world, size);
    const struct figure figure = {"allreduce", size, 1, 0};
    measure(world, &figure, allreduce, &call);
    end_call(&call);
}
static void allgather_of(const struct world* world, size_t size) {
    struct call call = new_call(world, size);
    const struct figure figure = {"allgather", size, 1, 0};
    measure(world, &figure, allgather, &call);
    end_call(&call);
}

void collectives(const struct world* world) {
    if (world->ranks < 2) return;
    const struct options* options = world->options;
    const struct figure figure = {"barrier", 0, 1, 0};
    if (wants(options, "barrier")) measure(world, &figure, barrier, NULL);
    if (wants(options, "bcast")) {
        for_sizes(world, kSizes, kSizeCount, bcast_of);
        if (options->rounds == 0) for_sizes(world, kSizes, kSizeCount, osu_of);
    }
    if (wants(options, "allreduce")) for_sizes(world, kSizes, kSizeCount, allreduce_of);
    if (wants(options, "reduce")) for_sizes(world, kSizes, kSizeCount, reduce_of);
    if (wants(options, "allgather")) for_sizes(world, kSizes, kSizeCount, allgather_of);
}

/* ---- More ranks than processors */

/* As a solver has it: sums of eight numbers at rank 0, one after the other; no rank waits for
 * anybody unless the MPI does. */
static void reduce_loop(void* with) {
    struct call* call = with;
    call->in[0] = ++call->round;
    MPI_Reduce(call->in, call->out, doubles_of(call), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (is_root(call))
        require(call->out[0] == call->round * call->world->ranks, "the sum is wrong");
}

void reduce_loops(const struct world* world) {
    if (world->ranks < 2 || !wants(world->options, "reduce_loop")) return;
    struct call call = new_call(world, 8 * sizeof(double));
    const struct figure of_root = {"reduce_loop", call.size, 1, 0};
    measure(world, &of_root, reduce_loop, &call);
    const struct figure of_all = {"allreduce_loop", call.size, 1, 0};
    measure(world, &of_all, allreduce, &call);
    end_call(&call);
}
