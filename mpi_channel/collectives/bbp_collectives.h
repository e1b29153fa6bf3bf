/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BBP_COLLECTIVES_H
#define BBP_COLLECTIVES_H

/*
 * Collective operations of groups of ranks, as libbbp-fi.so offers them to an MPI beside the
 * provider (mpi_channel/collectives.hpp has the contract): a table of calls, found by the name
 * BBP_COLLECTIVES_SYMBOL in the library that libfabric has loaded.
 *
 * Operations: one at a time per group; begun by broadcast, gather or barrier, and tried by go_on
 * until that returns something else than BBP_COLLECTIVES_AGAIN: 0, BBP_COLLECTIVES_OTHER_SIZE
 * (over, but a member had another size in mind: what fits has come), or a negative code of bbp.h,
 * which ends the group. Between tries the caller makes its MPI's progress.
 * Thread safety: that of the provider's domain: different groups in different threads if that was
 * opened so.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BBP_COLLECTIVES_SYMBOL "bbp_get_collectives"
#define BBP_COLLECTIVES_VERSION 2
/* The other way: an int of the program's, by whose name it says that calls of several threads may
 * meet, whatever its MPI tells libfabric. */
#define BBP_CALLS_MEET_SYMBOL "bbp_calls_meet"
#define BBP_COLLECTIVES_AGAIN 1
#define BBP_COLLECTIVES_OTHER_SIZE 2
#define BBP_NO_BARRIER (-1)
#define BBP_EVERYBODY (-1)

struct bbp_group;

struct bbp_collectives {
    unsigned version; /* BBP_COLLECTIVES_VERSION */
    /* The caller's rank, and how many there are; -1 until an endpoint is enabled. */
    int (*rank)(void);
    int (*ranks)(void);
    /* The same for all ranks of the ring, and hardly for those of another one. */
    uint64_t (*ring)(void);
    /* Whether calls of several threads may meet, the MPI's own calls of the provider among them. */
    int (*is_shared)(void);
    /* The longest block of a gather. */
    size_t (*block_most)(void);
    /* An id for a group whose first member the caller is; a bit for each reserved barrier; 0, or
     * -1: it is reserved already. */
    uint32_t (*new_id)(void);
    uint64_t (*reserved_barriers)(void);
    int (*reserve_barrier)(unsigned barrier);
    /* Null if it has none. All members open it before any of them uses it. */
    struct bbp_group* (*open)(uint32_t id, const int* members, int count, int barrier);
    void (*close)(struct bbp_group* group);
    int (*broadcast)(struct bbp_group* group, void* bytes, size_t size, int root);
    /* `all`: a block for each member; needed at `to`, or everywhere if that is BBP_EVERYBODY. */
    int (*gather)(struct bbp_group* group, const void* own, size_t size, void* all, int to);
    int (*barrier)(struct bbp_group* group);
    int (*go_on)(struct bbp_group* group);
    /* Packets to several ranks by one post each, since the endpoint was enabled. */
    uint64_t (*multicasts)(void);
};

const struct bbp_collectives* bbp_get_collectives(void);

#ifdef __cplusplus
}
#endif

#endif
