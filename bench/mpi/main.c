/* SPDX-License-Identifier: Apache-2.0 */

/* An MPI program like any other: bench/mpi/run starts it over each MPI and each way below it.
 *
 *     mpirun.openmpi -n 2 mpi-figures-openmpi --figures latency,stream --seconds 0.5
 */
#include "method.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kUsage[] =
    "usage: mpi-figures-<MPI> [--figures A,B] [--bytes N,N] [--cpus 0,1] [--seconds S] [--deadline "
    "S]\n"
    "                         [--rounds N]\n"
    "  --figures   of latency, self, stream, transfer, barrier, bcast, allreduce, reduce, "
    "allgather,\n"
    "              reduce_loop (all that the number of ranks allows)\n"
    "  --bytes     sizes, instead of each figure's own\n"
    "  --cpus      rank r runs on number r modulo their count (0,1)\n"
    "  --seconds   for each figure and size (1)\n"
    "  --deadline  the program ends after this many seconds in any case (300)\n"
    "  --rounds    operations of each figure but bandwidths, untimed: for a profiler\n";

static void refuse(const char* argument) {
    fprintf(stderr, "mpi bench: '%s' means nothing here\n%s", argument, kUsage);
    exit(2);
}

static int numbers(const char* text, int most, long* to) {
    int count = 0;
    for (char* end = NULL; *text != '\0'; text = *end == ',' ? end + 1 : end) {
        if (count == most) refuse(text);
        to[count++] = strtol(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0') || to[count - 1] < 0) refuse(text);
    }
    return count;
}

void parse_options(int argc, char** argv, struct options* options) {
    *options = (struct options){.cpus = {0, 1}, .cpu_count = 2, .seconds = 1, .deadline = 300};
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(kUsage, stdout);
            exit(0);
        }
        if (i + 1 == argc) refuse(argv[i]);
        const char *name = argv[i], *value = argv[++i];
        long found[MOST_CPUS];
        if (strcmp(name, "--figures") == 0) {
            options->figures = value;
        } else if (strcmp(name, "--bytes") == 0) {
            options->size_count = numbers(value, MOST_SIZES, found);
            for (int j = 0; j < options->size_count; ++j) options->sizes[j] = (size_t)found[j];
        } else if (strcmp(name, "--cpus") == 0) {
            options->cpu_count = numbers(value, MOST_CPUS, found);
            for (int j = 0; j < options->cpu_count; ++j) options->cpus[j] = (int)found[j];
            if (options->cpu_count == 0) refuse(name);
        } else if (strcmp(name, "--seconds") == 0) {
            options->seconds = atof(value);
        } else if (strcmp(name, "--deadline") == 0) {
            options->deadline = (unsigned)atoi(value);
        } else if (strcmp(name, "--rounds") == 0) {
            options->rounds = atol(value);
        } else {
            refuse(name);
        }
    }
}

int main(int argc, char** argv) {
    struct options options;
    parse_options(argc, argv, &options);
    alarm(options.deadline);
    MPI_Init(&argc, &argv);
    struct world world = {.options = &options};
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
    /* Only now: threads that the MPI has started are to run where there is room. */
    pin_to_cpu_of(&options, world.rank);
    latency(&world);
    bandwidth(&world);
    collectives(&world);
    reduce_loops(&world);
    MPI_Finalize();
    return 0;
}
