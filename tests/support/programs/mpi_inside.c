// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program of calls below which an MPI makes collective calls of its own, with datatypes
// and communicators that the program never sees: gathers of unequal blocks, two groups that become
// one, files, windows, the end of everything. What they give is checked, and no error handler of
// the program's may hear of anything. Its argument: a file that it may write. For two ranks and
// more; it ends with 0 if all is right.
#include "tests/support/programs/mpi_program.h"

#include <stdlib.h>
#include <string.h>

static int handled;

static void count_call(MPI_Comm* comm, int* code, ...) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    (void)comm;
    MPI_Error_string(*code, text, &length);
    fprintf(stderr, "rank %d: its error handler is told: %s\n", me, text);
    ++handled;
}

/* Blocks of 0 to `all` - 1 numbers, one of which is empty. */
static void gather_unequal_blocks(MPI_Comm comm, MPI_Datatype type) {
    int *counts = malloc(sizeof(int) * (size_t)all), *at = malloc(sizeof(int) * (size_t)all);
    int total = 0;
    for (int i = 0; i < all; ++i) {
        counts[i] = i;
        at[i] = total;
        total += i;
    }
    int* const own = calloc((size_t)all, sizeof(int));
    int* const received = calloc((size_t)total + 1, sizeof(int));
    for (int i = 0; i < me; ++i) own[i] = 100 * me + i;
    MPI_Allgatherv(own, me, type, received, counts, at, type, comm);
    int is_right = 1;
    for (int i = 0; i < all; ++i) {
        for (int j = 0; j < i; ++j) is_right &= received[at[i] + j] == 100 * i + j;
    }
    expect(is_right, "MPI_Allgatherv", total);
    free(counts), free(at), free(own), free(received);
}

static void merge_two_groups(MPI_Comm comm) {
    MPI_Comm half, between, merged;
    MPI_Comm_split(comm, me % 2, me, &half);
    MPI_Intercomm_create(half, 0, comm, 1 - me % 2, 7, &between);
    MPI_Intercomm_merge(between, me % 2, &merged);
    int size = 0, rank = 0, sum = 0;
    MPI_Comm_size(merged, &size);
    MPI_Comm_rank(merged, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged);
    expect(size == all && sum == all * (all - 1) / 2, "MPI_Intercomm_merge", sum);
    int from_others = -1;
    MPI_Allreduce(&me, &from_others, 1, MPI_INT, MPI_MIN, between);
    expect(from_others == 1 - me % 2, "MPI_Allreduce between groups", from_others);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* Each rank has every all-th number of the file. */
static void share_a_file(MPI_Comm comm, const char* name) {
    enum { NUMBERS = 64 };
    int out[NUMBERS], in[NUMBERS];
    MPI_Datatype mine;
    MPI_Type_vector(NUMBERS, 1, all, MPI_INT, &mine);
    MPI_Type_commit(&mine);
    for (int i = 0; i < NUMBERS; ++i) out[i] = 1000 * me + i;
    memset(in, 0, sizeof in);
    MPI_File file;
    int result = MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    expect(result == MPI_SUCCESS, "MPI_File_open", result);
    if (result == MPI_SUCCESS) {
        MPI_File_set_view(file, (MPI_Offset)(me * (int)sizeof(int)), MPI_INT, mine, "native",
                          MPI_INFO_NULL);
        result = MPI_File_write_all(file, out, NUMBERS, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        if (result == MPI_SUCCESS)
            result = MPI_File_read_at_all(file, 0, in, NUMBERS, MPI_INT, MPI_STATUS_IGNORE);
        expect(result == MPI_SUCCESS && memcmp(in, out, sizeof in) == 0, "a file of all ranks",
               result);
        MPI_File_close(&file);
    }
    MPI_Type_free(&mine);
}

/* In MPI_Finalize, which frees what MPI_COMM_SELF has first. */
static int meet_at_the_end(MPI_Comm comm, int key, void* attribute, void* extra) {
    (void)comm, (void)key, (void)attribute, (void)extra;
    int sum = 0;
    const int result = MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(result == MPI_SUCCESS && sum == all * (all - 1) / 2, "MPI_Allreduce at the end", sum);
    return MPI_SUCCESS;
}

int main(int argc, char** argv) {
    begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(count_call, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Datatype number;
    MPI_Type_contiguous(1, MPI_INT, &number);
    MPI_Type_commit(&number);
    gather_unequal_blocks(MPI_COMM_WORLD, MPI_INT);
    gather_unequal_blocks(MPI_COMM_WORLD, number);
    MPI_Type_free(&number);
    merge_two_groups(MPI_COMM_WORLD);
    if (argc > 1) share_a_file(MPI_COMM_WORLD, argv[1]);
    put_to_next();
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, meet_at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return faults != 0 || handled != 0;
}
