/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How every MPI is measured: the parts that the figures of bench/mpi/ share.
 *
 *     series = lead(ns, batch, op, with)   rank 0: times `batch` calls of `op` at a time until `ns`
 *                                          are over; sorted
 *     follow(batch, op, with)              the other ranks: as often as rank 0 says
 *
 * Rank 0 alone decides how often; it tells the others chunk by chunk by MPI_Bcast, outside of what
 * is timed, so that a figure takes its time and no more, however slow the MPI is. Rank 0 prints one
 * JSON object per figure, on a line of its own.
 * Units: ns. Percentiles by nearest rank; nothing is subtracted. A sample that is timed singly
 * contains one reading of the clock.
 * Errors: a wrong result, or an argument that means nothing, ends all ranks with a sentence
 * (MPI_Abort).
 * Thread safety: one thread. */

#include <stdbool.h>
#include <stddef.h>

#define MOST_CPUS 64
#define MOST_SIZES 32
#define MOST_SAMPLES 100000
#define BATCH 100

struct options {
    int cpus[MOST_CPUS]; /* rank r runs on number r modulo `cpu_count` */
    int cpu_count;
    const char* figures; /* names, with commas; null: all */
    size_t sizes[MOST_SIZES];
    int size_count;    /* 0: each figure's own */
    double seconds;    /* for a figure of one size */
    unsigned deadline; /* s, for the whole program */
    long rounds;       /* 0: by the time; else this number, untimed: for a profiler */
};

struct world {
    int rank, ranks;
    const struct options* options;
};

struct series {
    double* values;
    size_t count;
};

/* A figure's name and the meaning of its samples. */
struct figure {
    const char* name;
    size_t bytes;
    double share; /* of an operation's time: half of a round trip */
    double ack;   /* ns of it that are the way back; 0: none */
};

typedef void operation(void* with);

void parse_options(int argc, char** argv, struct options* options);
void pin_to_cpu_of(const struct options* options, int rank);
bool wants(const struct options* options, const char* figure);
void require(bool holds, const char* complaint);
double now_ns(void);

/* Warm-up, then single operations, then batches; rank 0 prints, unless the figure has no name.
 * Returns at rank 0 the lower of the two medians, which other jobs have disturbed less. */
double measure(const struct world* world, const struct figure* figure, operation* op, void* with);

struct series lead(double ns, size_t batch, operation* op, void* with);
void follow(size_t batch, operation* op, void* with);
void sort(struct series* series);
/* Of a sorted one. */
double quantile(const struct series* series, double share);

void print_begin(const struct world* world, const struct figure* figure);
void print_series(const struct figure* figure, const struct series* series);
void print_number(const char* name, double value);
void print_end(void);

/* ---- The figures: which sizes, unless the options say */
void latency(const struct world* world);
void bandwidth(const struct world* world);
void collectives(const struct world* world);
void reduce_loops(const struct world* world);

/* Calls `one` for each size of the options, or else of `own`. */
void for_sizes(const struct world* world, const size_t* own, int count,
               void (*one)(const struct world*, size_t));
