/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "method.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of the time given: a warm-up, single operations, batches. */
static const double kWarmUp = 0.1, kSingles = 0.4, kBatches = 0.5;
/* Chunks grow until agreeing on them costs nothing. */
static const double kChunkShare = 1.0 / 32;
static const double kFewBatches = 8;

void require(bool holds, const char* complaint) {
    if (holds) return;
    fprintf(stderr, "mpi bench: %s\n", complaint);
    int started = 0;
    MPI_Initialized(&started);
    if (started) MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void pin_to_cpu_of(const struct options* options, int rank) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)options->cpus[rank % options->cpu_count], &set);
    require(sched_setaffinity(0, sizeof set, &set) == 0, "cannot pin to that CPU");
}

bool wants(const struct options* options, const char* figure) {
    if (options->figures == NULL) return true;
    const size_t length = strlen(figure);
    for (const char* at = options->figures; at != NULL; at = strchr(at, ',')) {
        if (*at == ',') ++at;
        if (strncmp(at, figure, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

void for_sizes(const struct world* world, const size_t* own, int count,
               void (*one)(const struct world*, size_t)) {
    const struct options* options = world->options;
    const bool is_told = options->size_count != 0;
    const int all = is_told ? options->size_count : count;
    for (int i = 0; i < all; ++i) one(world, is_told ? options->sizes[i] : own[i]);
}

/* ---- Series */

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

void sort(struct series* series) {
    qsort(series->values, series->count, sizeof(double), compare);
}

double quantile(const struct series* series, double share) {
    const double place = share * (double)series->count;
    size_t rank = (size_t)place;
    if ((double)rank < place || rank == 0) ++rank;
    if (rank > series->count) rank = series->count;
    return series->values[rank - 1];
}

static void agree_on(long* count) {
    MPI_Bcast(count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
}

struct series lead(double ns, size_t batch, operation* op, void* with) {
    struct series series = {malloc(MOST_SAMPLES * sizeof(double)), 0};
    require(series.values != NULL, "no memory for the samples");
    const double first = now_ns();
    for (long chunk = 1;;) {
        const double start = now_ns();
        const long room = MOST_SAMPLES - (long)series.count;
        long count = chunk < room ? chunk : room;
        if (series.count != 0 && start - first > ns) count = 0;
        agree_on(&count);
        if (count == 0) break;
        for (long i = 0; i < count; ++i) {
            const double before = now_ns();
            for (size_t j = 0; j < batch; ++j) op(with);
            series.values[series.count++] = (now_ns() - before) / (double)batch;
        }
        if (now_ns() - start < ns * kChunkShare) chunk *= 2;
    }
    sort(&series);
    return series;
}

void follow(size_t batch, operation* op, void* with) {
    for (long count = 0; agree_on(&count), count > 0;) {
        for (long i = 0; i < count * (long)batch; ++i) op(with);
    }
}

/* ---- What is printed */

void print_begin(const struct world* world, const struct figure* figure) {
    printf("{\"figure\":\"%s\",\"bytes\":%zu,\"ranks\":%d", figure->name, figure->bytes,
           world->ranks);
}

void print_number(const char* name, double value) {
    printf(",\"%s\":%.1f", name, value);
}

void print_series(const struct figure* figure, const struct series* series) {
    static const struct {
        const char* name;
        double share;
    } told[] = {{"p10_ns", 0.1},  {"p50_ns", 0.5},    {"p90_ns", 0.9},
                {"p99_ns", 0.99}, {"p999_ns", 0.999}, {"max_ns", 1}};
    printf(",\"samples\":%zu", series->count);
    for (size_t i = 0; i < sizeof told / sizeof *told; ++i)
        print_number(told[i].name, quantile(series, told[i].share) * figure->share);
}

void print_end(void) {
    printf("}\n");
    fflush(stdout);
}

/* The given number of times, for a profiler: nothing is timed. */
static double repeat(const struct world* world, operation* op, void* with) {
    for (long i = 0; i < world->options->rounds; ++i) op(with);
    return 0;
}

/* Less than BATCH operations where these are so slow that few batches would fit the time. */
static long batch_for(double ns, double of_one) {
    const double fit = ns / kFewBatches / of_one;
    return fit < 1 ? 1 : fit < BATCH ? (long)fit : BATCH;
}

double measure(const struct world* world, const struct figure* figure, operation* op, void* with) {
    if (world->options->rounds != 0) return repeat(world, op, with);
    long batch = BATCH;
    if (world->rank != 0) {
        follow(1, op, with);
        follow(1, op, with);
        agree_on(&batch);
        follow((size_t)batch, op, with);
        return 0;
    }
    const double ns = world->options->seconds * 1e9;
    struct series warm_up = lead(ns * kWarmUp, 1, op, with);
    struct series singles = lead(ns * kSingles, 1, op, with);
    batch = batch_for(ns * kBatches, quantile(&singles, 0.5));
    agree_on(&batch);
    struct series means = lead(ns * kBatches, (size_t)batch, op, with);
    const double share = figure->share, mean = quantile(&means, 0.5) * share;
    if (figure->name != NULL) {
        print_begin(world, figure);
        print_series(figure, &singles);
        printf(",\"batch\":%ld", batch);
        print_number("batch_p50_ns", mean);
        print_number("batch_p10_ns", quantile(&means, 0.1) * share);
        print_number("batch_p99_ns", quantile(&means, 0.99) * share);
        if (figure->ack != 0) print_number("ack_ns", figure->ack);
        print_end();
    }
    const double single = quantile(&singles, 0.5) * share;
    free(warm_up.values);
    free(singles.values);
    free(means.values);
    return single < mean ? single : mean;
}
