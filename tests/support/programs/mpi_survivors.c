// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program whose rank 1 is killed between two collective calls: at each of the others a
// call must end with an error then. It is to be run where no launcher ends them.
//   mpi_survivors <barrier, bcast, reduce, allreduce or allgather> <folder>
// A survivor r says `rank <r>: <call> has failed` in <folder>/<r>, and stays until the other has
// its file, too: a rank that is left alone may be ended by its MPI. What waits for the dead rank
// forever is ended by its alarm.
#include "tests/support/programs/mpi_program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, ROUNDS = 100, KILLED_IN = 10, ALARM_SECONDS = 40 };

static int call_once(const char* call, int round) {
    static int word, sum, words[RANKS];
    const MPI_Comm world = MPI_COMM_WORLD;
    if (strcmp(call, "barrier") == 0) return MPI_Barrier(world);
    if (strcmp(call, "bcast") == 0) return MPI_Bcast(&word, 1, MPI_INT, round % all, world);
    if (strcmp(call, "reduce") == 0)
        return MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, round % all, world);
    if (strcmp(call, "allreduce") == 0)
        return MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, world);
    return MPI_Allgather(&word, 1, MPI_INT, words, 1, MPI_INT, world);
}

int main(int argc, char** argv) {
    alarm(ALARM_SECONDS);
    begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc != 3 || all != RANKS || chdir(argv[2]) != 0) return 2;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int result = MPI_SUCCESS;
    for (int round = 0; result == MPI_SUCCESS && round < ROUNDS; ++round) {
        if (me == 1 && round == KILLED_IN) raise(SIGKILL);
        result = call_once(argv[1], round);
    }
    FILE* const said = fopen(me == 0 ? "0" : "2", "w");
    if (said == NULL) return 2;
    if (result != MPI_SUCCESS) fprintf(said, "rank %d: %s has failed\n", me, argv[1]);
    fclose(said);
    while (access("0", F_OK) != 0 || access("2", F_OK) != 0) usleep(10000);
    /* Ending well needs all ranks. */
    _Exit(0);
}
