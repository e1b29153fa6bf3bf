/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim for MPICH: preloaded (mpirun-bbp-mpich does so), it has the collective calls under their own names, and what it does not do
 * itself goes to MPICH by MPI's profiling interface. What it knows of a communicator is an attribute of that.
 */
#define _DEFAULT_SOURCE
#include "mpi_channel/collectives/calls.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Comm quiet = MPI_COMM_NULL; /* its errors are returned */
static int own = 0;                    /* rank in MPI_COMM_WORLD */

static int forget(MPI_Comm comm, int key, void* attribute, void* extra) {
    (void)comm, (void)key, (void)extra;
    bbp_comm_end(attribute);
    free(attribute);
    return MPI_SUCCESS;
}

static void begin(void) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &own);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
    MPI_Group self;
    PMPI_Comm_group(MPI_COMM_SELF, &self);
    PMPI_Comm_create(MPI_COMM_SELF, self, &quiet);
    PMPI_Group_free(&self);
    PMPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
}

/* What a probe finds stays. On MPI_COMM_SELF, or a copy of that, it would look at no network. */
void bbp_mpi_progress(void) {
    int found = 0;
    PMPI_Iprobe(own, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

/* MPICH tells nobody but who packs, and looks before it packs nothing. */
int bbp_is_committed(MPI_Datatype type) {
    char nothing = 0;
    int position = 0;
    return PMPI_Pack(&nothing, 0, type, &nothing, sizeof nothing, &position, quiet) == MPI_SUCCESS;
}

static int plain_or(struct bbp_comm* self, unsigned long long* values, int count) {
    return PMPI_Allreduce(MPI_IN_PLACE, values, count, MPI_UNSIGNED_LONG_LONG, MPI_BOR, self->comm);
}

/* Null: not to be had, the call is a plain one; MPICH says why it is none, if so. */
static struct bbp_comm* known(MPI_Comm comm) {
    if (comm == MPI_COMM_NULL) return NULL;
    pthread_once(&once, begin);
    struct bbp_comm* its = NULL;
    int is_known = 0;
    PMPI_Comm_get_attr(comm, keyval, &its, &is_known);
    if (is_known) return its;
    its = malloc(sizeof *its);
    if (its == NULL) return NULL;
    bbp_comm_begin(its, comm);
    its->plain_or = plain_or;
    if (PMPI_Comm_set_attr(comm, keyval, its) == MPI_SUCCESS) return its;
    free(its);
    return NULL;
}

static int report(MPI_Comm comm, int result) {
    if (result != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, result);
    return result;
}

/* MPICH keeps threads apart by a lock of its own, which these calls do not have: the provider is to use its own. */
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    if (required == MPI_THREAD_MULTIPLE) setenv("RMEM_MPI_LOCK", "1", 1);
    return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Barrier(MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result = its == NULL ? BBP_PLAIN : bbp_barrier_call(its);
    return result == BBP_PLAIN ? PMPI_Barrier(comm) : report(comm, result);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result = its == NULL ? BBP_PLAIN : bbp_bcast_call(its, buffer, count, type, root);
    return result == BBP_PLAIN ? PMPI_Bcast(buffer, count, type, root, comm) : report(comm, result);
}

int MPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result =
        its == NULL ? BBP_PLAIN : bbp_reduce_call(its, send, receive, count, type, op, root);
    return result == BBP_PLAIN ? PMPI_Reduce(send, receive, count, type, op, root, comm)
                               : report(comm, result);
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result =
        its == NULL ? BBP_PLAIN : bbp_allreduce_call(its, send, receive, count, type, op);
    return result == BBP_PLAIN ? PMPI_Allreduce(send, receive, count, type, op, comm)
                               : report(comm, result);
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result = its == NULL ? BBP_PLAIN
                                   : bbp_allgather_call(its, send, send_count, send_type, receive,
                                                        receive_count, receive_type);
    return result == BBP_PLAIN ? PMPI_Allgather(send, send_count, send_type, receive, receive_count,
                                                receive_type, comm)
                               : report(comm, result);
}
