// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program that knows nothing of rings: messages of all sizes between all ranks, probes,
// collectives, one-sided writes. It ends with 0 if all has arrived as it was sent.
// `mpi_traffic die`: rank 1 aborts; `mpi_traffic kill`: it kills itself.
#include "tests/support/programs/mpi_program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* In a circle of changing width, sends and receives in either order. */
static void exchange(long size, int rounds) {
    unsigned char *out = malloc((size_t)size + 1), *in = malloc((size_t)size + 1);
    for (long i = 0; i < size; ++i) out[i] = byte_of(me, i);
    for (int round = 0; round < rounds; ++round) {
        const int to = (me + 1 + round) % all, from = (me - 1 - round % all + 2 * all) % all;
        const int asked = round % 3 == 1 ? MPI_ANY_SOURCE : from;
        MPI_Request requests[2];
        if (round % 2 == 0)
            MPI_Irecv(in, (int)size, MPI_BYTE, asked, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out, (int)size, MPI_BYTE, to, round, MPI_COMM_WORLD, &requests[0]);
        if (round % 2 == 1)
            MPI_Irecv(in, (int)size, MPI_BYTE, asked, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (long i = 0; i < size; i += 1 + size / 1000) {
            if (in[i] == byte_of(from, i)) continue;
            expect(0, "a message has other bytes than were sent", i);
            break;
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(out);
    free(in);
}

static void probe_and_claim(void) {
    for (int i = 1; me == 0 && i < all; ++i) {
        MPI_Message message;
        MPI_Status status;
        int count = 0;
        MPI_Mprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        int* numbers = malloc(sizeof(int) * (size_t)count);
        MPI_Mrecv(numbers, count, MPI_INT, &message, &status);
        expect(count == status.MPI_SOURCE * 30000 && numbers[count - 1] == status.MPI_SOURCE,
               "a probed message is another one", count);
        free(numbers);
    }
    if (me != 0) {
        int* numbers = calloc((size_t)me * 30000, sizeof(int));
        numbers[me * 30000 - 1] = me;
        MPI_Send(numbers, me * 30000, MPI_INT, 0, 9, MPI_COMM_WORLD);
        free(numbers);
    }
}

static void collect(void) {
    int sum = 0, part = 0, *ranks = malloc(sizeof(int) * (size_t)all);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(sum == all * (all - 1) / 2, "the sum of all ranks", sum);
    MPI_Allgather(&me, 1, MPI_INT, ranks, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < all; ++i) expect(ranks[i] == i, "all ranks, gathered", i);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Allreduce(&me, &part, 1, MPI_INT, MPI_SUM, half);
    for (int i = me % 2; i < all; i += 2) part -= i;
    expect(part == 0, "the sum of every second rank", part);
    MPI_Comm_free(&half);
    free(ranks);
}

int main(int argc, char** argv) {
    begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1 && me == 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (strcmp(argv[1], "die") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
        raise(SIGKILL);
    }
    if (argc > 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(&faults, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const long sizes[] = {0, 1, 8, 100, 1000, 5000, 16364, 16365, 65536, 65537, 1 << 20, 64 << 20};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        exchange(sizes[i], sizes[i] < 1000000 ? 20 : sizes[i] < 10000000 ? 4 : 1);
    }
    probe_and_claim();
    collect();
    put_to_next();
    MPI_Finalize();
    return faults != 0;
}
