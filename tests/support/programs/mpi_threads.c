// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program whose threads talk at once (MPI_THREAD_MULTIPLE): each in a communicator of
// its own, and all in the common one, told apart by tags; then several communicators at once from
// one thread, and a window. It ends with 0 if all has arrived as it was sent.
#include "tests/support/programs/mpi_program.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 40, MOST = 100000 };

struct Thread {
    pthread_t id;
    int number;
    MPI_Comm own;
    int faults;
};

static void expect_in(struct Thread* thread, int holds, const char* what) {
    if (holds || ++thread->faults > 1) return;
    fprintf(stderr, "rank %d, thread %d: %s\n", me, thread->number, what);
}

/* Sizes from 0 to some that are asked for before they are sent. */
static int size_of(int round) {
    return round % 5 == 0 ? round * 10 : (round * 7919) % MOST;
}

static int word_of(int from, int thread, int round) {
    return from * 1000000 + thread * 10000 + round;
}

/* To the next rank and from the one before, in this communicator. */
static void pass_on(struct Thread* thread, MPI_Comm in, int tag, int round, int* out, int* words) {
    const int to = (me + 1) % all, from = (me + all - 1) % all, count = size_of(round);
    MPI_Request request;
    MPI_Status status;
    int came = -1;
    for (int i = 0; i < count; ++i) out[i] = word_of(me, thread->number, round) + i % 10;
    MPI_Isend(out, count, MPI_INT, to, tag, in, &request);
    if (round % 3 == 0) {
        MPI_Message message;
        MPI_Mprobe(round % 2 ? MPI_ANY_SOURCE : from, tag, in, &message, &status);
        MPI_Mrecv(words, MOST, MPI_INT, &message, &status);
    } else {
        MPI_Recv(words, MOST, MPI_INT, round % 2 ? MPI_ANY_SOURCE : from, tag, in, &status);
    }
    MPI_Get_count(&status, MPI_INT, &came);
    expect_in(thread, came == count && status.MPI_SOURCE == from, "another message than was sent");
    for (int i = 0; i < count; ++i) {
        if (words[i] == word_of(from, thread->number, round) + i % 10) continue;
        expect_in(thread, 0, "a message has other words than were sent");
        break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void* talk(void* argument) {
    struct Thread* thread = argument;
    int *out = malloc(MOST * sizeof *out), *words = malloc(MOST * sizeof *words), sum = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        pass_on(thread, thread->own, 7, round, out, words);
        pass_on(thread, MPI_COMM_WORLD, thread->number, round, out, words);
        const int mine = word_of(me, thread->number, round);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_MAX, thread->own);
        expect_in(thread, sum == word_of(all - 1, thread->number, round), "the greatest word");
    }
    free(out);
    free(words);
    return NULL;
}

/* Reductions and barriers of all communicators under way together; they end in an order of their
 * own. */
static void reduce_in_all(struct Thread* threads) {
    int ones[THREADS], sums[THREADS];
    MPI_Request requests[2 * THREADS];
    for (int i = 0; i < THREADS; ++i) {
        ones[i] = i + 1;
        MPI_Iallreduce(&ones[i], &sums[i], 1, MPI_INT, MPI_SUM, threads[i].own, &requests[i]);
    }
    for (int i = 0; i < THREADS; ++i) MPI_Ibarrier(threads[i].own, &requests[THREADS + i]);
    MPI_Waitall(2 * THREADS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < THREADS; ++i) {
        expect_in(&threads[i], sums[i] == all * (i + 1), "a sum while others are under way");
    }
}

int main(int argc, char** argv) {
    struct Thread threads[THREADS];
    begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; ++i) {
        threads[i].number = i;
        threads[i].faults = 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].own);
    }
    for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i].id, NULL, talk, &threads[i]);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i].id, NULL);
    reduce_in_all(threads);
    /* Also where the MPI's own messages for windows are for one thread alone. */
    put_to_next();
    for (int i = 0; i < THREADS; ++i) {
        faults += threads[i].faults;
        MPI_Comm_free(&threads[i].own);
    }
    MPI_Finalize();
    return faults != 0;
}
