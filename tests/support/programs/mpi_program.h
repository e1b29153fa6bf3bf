/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MPI_PROGRAM_H
#define MPI_PROGRAM_H

/* What plain MPI programs share that check what they are given; each ends with whether there were
 * faults. */
#include <mpi.h>
#include <stdio.h>

static int me, all, faults;

/* `level` of threads, or the program ends. */
static inline void begin(int* argc, char*** argv, int level) {
    int given = MPI_THREAD_SINGLE;
    MPI_Init_thread(argc, argv, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    if (given >= level) return;
    fprintf(stderr, "this MPI has too few threads\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static inline void expect(int holds, const char* what, long detail) {
    if (holds || ++faults > 20) return;
    fprintf(stderr, "rank %d: %s (%ld)\n", me, what, detail);
}

static inline unsigned char byte_of(int seed, long i) {
    return (unsigned char)(seed * 131 + i * 7 + (i >> 8));
}

/* A word into a window of each rank, by the one before it. */
static inline void put_to_next(void) {
    int words[2] = {me, -1};
    const int value = me + 100;
    MPI_Win window;
    MPI_Win_create(words, sizeof words, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_INT, (me + 1) % all, 1, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(words[1] == (me - 1 + all) % all + 100, "a word put by its neighbour", words[1]);
    MPI_Win_free(&window);
}

#endif
