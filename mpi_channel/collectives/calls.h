/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BBP_CALLS_H
#define BBP_CALLS_H

/*
 * MPI's collective calls by the billboard's multicast: what Open MPI's component (openmpi.c) and
 * the shim for MPICH (mpich.c) have in common. Compiled once for each MPI, against its mpi.h.
 *
 * Each call says BBP_PLAIN when it is one for the MPI's own algorithm; all members of the
 * communicator come to the same answer, since it depends on what is the same at all: the bytes of a
 * message or block, the operation, the settings.
 *
 *   MPI_Bcast                  up to BCAST_MOST bytes: one multicast, or one per piece
 *   MPI_Barrier                the billboard's; beyond its 64 groups a multicast of each member to
 *                              all
 *   MPI_Reduce, MPI_Allreduce  up to REDUCE_MOST bytes: each member's vector to the root, or by a
 *                              multicast to all, which then compute in the order of the ranks: the
 *                              same result everywhere, also of operations that do not commute
 *   MPI_Allgather              blocks up to GATHER_MOST bytes: a multicast of each member
 *
 * `collectives` of RMEM_MPI: which of them (mpi_channel/settings.hpp, which checks it).
 *
 * While a call waits it makes the MPI's progress, too: a member that is in it answers requests of
 * others that are not yet.
 *
 * Errors: returned, and told to the communicator's error handler once. A member whose buffer has
 * another size than what comes: MPI_ERR_TRUNCATE, and the communicator can be used on, as long as
 * both sizes are on the same side of the limits above.
 *
 * Rule: these calls come with anything, from the program and from inside the MPI, whose algorithms
 * and file operations use the public entry points with datatypes and communicators of their own,
 * also while it begins and ends. So nothing is called here that could raise an error handler which
 * is not this library's: calls.c calls no function of MPI at all, openmpi.c only what Open MPI has
 * inside, which raises none, and mpich.c asks about a handle that has come in through a
 * communicator of its own, whose errors are returned, before it uses it elsewhere. An unusable
 * handle is left to the MPI's own call, which says so in its own words.
 *
 * Thread safety: as MPI's: one call at a time on a communicator.
 */

#include "mpi_channel/collectives/bbp_collectives.h"

#include <mpi.h>

#define BBP_PLAIN (-1000)

struct bbp_comm {
    MPI_Comm comm;
    int size, rank;

    /* Since the first call */
    enum { BBP_FRESH, BBP_OPEN, BBP_NEVER } state;
    const struct bbp_collectives* calls;
    struct bbp_group* group;
    char* scratch;
    size_t scratch_bytes;
};

struct bbp_type {
    size_t size;
    MPI_Aint extent;
    int is_plain; /* its elements lie in memory as they are sent */
};

/* `size`: of an intracommunicator; else 0. */
void bbp_comm_begin(struct bbp_comm* self, MPI_Comm comm, int size, int rank);
void bbp_comm_end(struct bbp_comm* self);

/* MPI_SUCCESS, an MPI error code, or BBP_PLAIN. */
int bbp_barrier_call(struct bbp_comm* self);
int bbp_bcast_call(struct bbp_comm* self, void* buffer, int count, MPI_Datatype type, int root);
int bbp_reduce_call(struct bbp_comm* self, const void* send, void* receive, int count,
                    MPI_Datatype type, MPI_Op op, int root);
int bbp_allreduce_call(struct bbp_comm* self, const void* send, void* receive, int count,
                       MPI_Datatype type, MPI_Op op);
int bbp_allgather_call(struct bbp_comm* self, const void* send, int send_count,
                       MPI_Datatype send_type, void* receive, int receive_count,
                       MPI_Datatype receive_type);

/* ---- What openmpi.c and mpich.c have one each of. Results: MPI_SUCCESS, or an error that nobody
 * was told yet. */

/* The MPI's own progress, once. */
void bbp_mpi_progress(struct bbp_comm* self);
/* An allreduce by MPI_BOR of numbers, by the MPI's own algorithm. */
int bbp_mpi_or(struct bbp_comm* self, unsigned long long* values, int count);
int bbp_mpi_threads_may_meet(void);
/* False: none to send or receive with. */
int bbp_mpi_type(MPI_Datatype type, struct bbp_type* its);
/* Of an operation of the program's. */
int bbp_mpi_is_op(MPI_Op op, MPI_Datatype type);
int bbp_mpi_pack(const void* from, int count, MPI_Datatype type, char* to, size_t bytes);
int bbp_mpi_unpack(char* from, size_t bytes, void* to, int count, MPI_Datatype type);
/* With `into` as the right operand. */
int bbp_mpi_combine(const void* with, void* into, int count, MPI_Datatype type, MPI_Op op);

#endif
