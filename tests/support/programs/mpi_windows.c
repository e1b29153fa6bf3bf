// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program with windows of each kind that has memory of the MPI's: those that all ranks
// of a node share, where each rank reads what the others have stored; and allocated ones, into
// which each rank puts 40 words, one by one. With an argument it asks for MPI_THREAD_MULTIPLE. It
// ends with 0 if all is as it was stored.
#include "tests/support/programs/mpi_program.h"

#include <string.h>

enum { PUTS = 40 };

/* How many ranks the node has. */
static int share_memory(void) {
    MPI_Comm node;
    MPI_Win window;
    long *own, *its;
    int rank, ranks, unit;
    MPI_Aint size;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &ranks);
    MPI_Win_allocate_shared(3 * sizeof *own, sizeof *own, MPI_INFO_NULL, node, &own, &window);
    MPI_Win_fence(0, window);
    own[2] = 1000 + rank;
    MPI_Win_fence(0, window);
    for (int other = 0; other < ranks; ++other) {
        MPI_Win_shared_query(window, other, &size, &unit, &its);
        expect(size == 3 * sizeof *own && unit == sizeof *own,
               "MPI_Win_shared_query tells another size", size);
        expect(its[2] == 1000 + other, "allocate_shared: another word than that rank has stored",
               its[2]);
    }
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&node);
    return ranks;
}

static void put_words(MPI_Comm in) {
    MPI_Win window;
    int *own, rank, ranks;
    MPI_Comm_rank(in, &rank);
    MPI_Comm_size(in, &ranks);
    MPI_Win_allocate(PUTS * sizeof *own, sizeof *own, MPI_INFO_NULL, in, &own, &window);
    memset(own, 0, PUTS * sizeof *own);
    for (int i = 0; i < PUTS; ++i) {
        const int word = rank * PUTS + i;
        MPI_Win_fence(0, window);
        MPI_Put(&word, 1, MPI_INT, (rank + 1) % ranks, i, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
    }
    for (int i = 0; i < PUTS; ++i)
        expect(own[i] == (rank + ranks - 1) % ranks * PUTS + i,
               "allocate: another word than was put", own[i]);
    MPI_Win_free(&window);
}

int main(int argc, char** argv) {
    begin(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    const int ranks = share_memory();
    expect(ranks == all, "some ranks of this host are on another node", ranks);
    put_words(MPI_COMM_WORLD);
    put_words(MPI_COMM_SELF);
    MPI_Finalize();
    return faults != 0;
}
