// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program of collective calls that are wrong at all ranks: each must end with the error
// that the MPI's own function, called by its profiling name, gives, and tell the error handler as
// often. Rank 0 prints the errors; it ends with 0 if all agree. Among them are calls on a
// communicator that was freed before any other call, and broadcasts that are longer than a
// receiver's buffer, after which the communicator can be used on.
#include "tests/support/programs/mpi_program.h"

static int handled;
static int is_counted; /* the communicator has the handler that counts */

static void count_call(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++handled;
}

static int class_of(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

static void compare(const char* what, int code, int told, int plain_code, int plain_told) {
    const int class = class_of(code), plain_class = class_of(plain_code);
    if (me == 0) printf("%s: class %d, told %d times\n", what, class, told);
    if (class == plain_class && told == plain_told) return;
    ++faults;
    fprintf(stderr, "rank %d: %s: class %d, told %d times; of MPI's own %d, %d times\n", me, what,
            class, told, plain_class, plain_told);
}

#define COMPARE(call, ...)                                                       \
    do {                                                                         \
        handled = 0;                                                             \
        const int code = MPI_##call(__VA_ARGS__), told = handled;                \
        handled = 0;                                                             \
        const int plain_code = PMPI_##call(__VA_ARGS__), plain_told = handled;   \
        compare(#call "(" #__VA_ARGS__ ")", code, told, plain_code, plain_told); \
    } while (0)

/* `bare` is not committed. */
static void call_wrongly(MPI_Comm comm, MPI_Datatype bare) {
    int word = 1, words[64] = {0}, far[64] = {0};
    double number = 1, sum = 0;
    COMPARE(Barrier, MPI_COMM_NULL);
    COMPARE(Bcast, &word, 1, MPI_INT, 0, MPI_COMM_NULL);
    COMPARE(Bcast, words, 1, bare, 0, comm);
    COMPARE(Bcast, &word, -1, MPI_INT, 0, comm);
    COMPARE(Bcast, &word, 1, MPI_DATATYPE_NULL, 0, comm);
    COMPARE(Bcast, &word, 1, MPI_INT, all, comm);
    COMPARE(Bcast, &word, 1, MPI_INT, -1, comm);
    COMPARE(Bcast, NULL, 1, MPI_INT, 0, comm);
    COMPARE(Reduce, &word, words, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_NULL);
    COMPARE(Reduce, words, far, 1, bare, MPI_SUM, 0, comm);
    COMPARE(Reduce, &word, words, 1, MPI_INT, MPI_SUM, all, comm);
    COMPARE(Reduce, &word, words, 1, MPI_INT, MPI_SUM, -1, comm);
    COMPARE(Reduce, &word, words, 1, MPI_INT, MPI_OP_NULL, 0, comm);
    COMPARE(Reduce, &number, &sum, 1, MPI_DOUBLE, MPI_BAND, 0, comm);
    COMPARE(Reduce, NULL, words, 1, MPI_INT, MPI_SUM, 0, comm);
    COMPARE(Allreduce, &word, words, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
    COMPARE(Allreduce, words, far, 1, bare, MPI_SUM, comm);
    COMPARE(Allreduce, &word, words, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
    COMPARE(Allreduce, &word, words, 1, MPI_INT, MPI_OP_NULL, comm);
    COMPARE(Allreduce, &number, &sum, 1, MPI_DOUBLE, MPI_BAND, comm);
    COMPARE(Allreduce, NULL, words, 1, MPI_INT, MPI_SUM, comm);
    COMPARE(Allreduce, &word, NULL, 1, MPI_INT, MPI_SUM, comm);
    COMPARE(Allreduce, words, words, 1, MPI_INT, MPI_SUM, comm);
    COMPARE(Allreduce, &word, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm);
    COMPARE(Allgather, &word, 1, MPI_INT, words, 1, MPI_INT, MPI_COMM_NULL);
    COMPARE(Allgather, words, 1, bare, far, 2, MPI_INT, comm);
    COMPARE(Allgather, words, 2, MPI_INT, far, 1, bare, comm);
    COMPARE(Allgather, &word, -1, MPI_INT, words, 1, MPI_INT, comm);
    COMPARE(Allgather, &word, 1, MPI_INT, words, -1, MPI_INT, comm);
    COMPARE(Allgather, &word, 1, MPI_DATATYPE_NULL, words, 1, MPI_INT, comm);
    COMPARE(Allgather, NULL, 1, MPI_INT, words, 1, MPI_INT, comm);
    COMPARE(Allgather, &word, 1, MPI_INT, NULL, 1, MPI_INT, comm);
    COMPARE(Allgather, &word, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm);
    COMPARE(Allgather, words + me, 1, MPI_INT, words, 1, MPI_INT, comm);
}

/* A handle that is nobody's any more must not have become that of something the library has made
 * for itself. */
static void call_on_freed(MPI_Comm freed) {
    int word = 1, words[64] = {0};
    COMPARE(Barrier, freed);
    COMPARE(Bcast, &word, 1, MPI_INT, 0, freed);
    COMPARE(Allreduce, &word, words, 1, MPI_INT, MPI_SUM, freed);
    COMPARE(Allgather, &word, 1, MPI_INT, words, 1, MPI_INT, freed);
}

/* The root, rank 0, sends more than the others have room for. */
static void send_too_much(MPI_Comm comm) {
    static int words[16000];
    MPI_Datatype spread;
    MPI_Type_vector(1, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    COMPARE(Bcast, words, me == 0 ? 10 : 1, MPI_INT, 0, comm);
    COMPARE(Bcast, words, me == 0 ? 10 : 2, spread, 0, comm);
    MPI_Type_free(&spread);
    /* Several pieces; MPICH's own algorithms of both sizes do not fit together. */
    handled = 0;
    const int code = MPI_Bcast(words, me == 0 ? 16000 : 1, MPI_INT, 0, comm);
    const int told = handled, expected = me == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
    compare("a long MPI_Bcast", code, told != 0, expected, is_counted && me != 0);
    COMPARE(Barrier, comm);
}

/* A copy of the world whose errors are told and returned; `is_used`: it has had collective calls
 * before. */
static void check(MPI_Errhandler handler, MPI_Datatype bare, int is_used) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    is_counted = handler != MPI_ERRORS_RETURN;
    if (is_used) MPI_Barrier(comm);
    call_wrongly(comm, bare);
    send_too_much(comm);
    int sum = 0;
    const int result = MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(result == MPI_SUCCESS && sum == all * (all - 1) / 2,
           "the communicator cannot be used any more", result);
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(count_call, &handler);
    /* Where a communicator is what is wrong. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm freed, copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    copy = freed;
    MPI_Comm_free(&copy);
    call_on_freed(freed);
    MPI_Datatype bare;
    MPI_Type_vector(2, 1, 2, MPI_INT, &bare);
    for (int is_used = 0; is_used < 2; ++is_used) {
        check(handler, bare, is_used);
        check(MPI_ERRORS_RETURN, bare, is_used);
    }
    MPI_Type_free(&bare);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return faults != 0;
}
