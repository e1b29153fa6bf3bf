// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program that never calls MPI_Init: a session of its own, and one that ends before it,
// each with a communicator of all ranks, on which collective calls give what they should. It ends
// with 0 if they do.
#include "tests/support/programs/mpi_program.h"

static MPI_Comm world_of(MPI_Session session, const char* name) {
    MPI_Group all;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Comm_create_from_group(all, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&all);
    return comm;
}

static void call_collectively(MPI_Comm comm) {
    enum { NUMBERS = 4 };
    int rank = 0, size = 0, sum = 0, total = 0, gathered[64] = {0}, far[2 * NUMBERS] = {0};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    expect(MPI_Barrier(comm) == MPI_SUCCESS, "MPI_Barrier", 0);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == size * (size - 1) / 2, "MPI_Allreduce", sum);
    MPI_Reduce(&sum, &total, 1, MPI_INT, MPI_MAX, 0, comm);
    expect(rank != 0 || total == sum, "MPI_Reduce", total);
    MPI_Allgather(&rank, 1, MPI_INT, gathered, 1, MPI_INT, comm);
    for (int i = 0; i < size && i < 64; ++i) expect(gathered[i] == i, "MPI_Allgather", i);
    MPI_Datatype spread;
    MPI_Type_vector(NUMBERS, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    for (int i = 0; i < 2 * NUMBERS; ++i) far[i] = rank == 0 ? i : -1;
    MPI_Bcast(far, 1, spread, 0, comm);
    for (int i = 0; i < 2 * NUMBERS; i += 2) expect(far[i] == i, "MPI_Bcast", i);
    MPI_Type_free(&spread);
}

int main(void) {
    MPI_Session first, second;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &first);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second);
    MPI_Comm one = world_of(first, "one"), other = world_of(second, "other");
    call_collectively(one);
    call_collectively(other);
    MPI_Comm_free(&one);
    MPI_Session_finalize(&first);
    call_collectively(other);
    MPI_Comm_free(&other);
    MPI_Session_finalize(&second);
    return faults != 0;
}
