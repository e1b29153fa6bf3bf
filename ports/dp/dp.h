/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DP_DP_H
#define DP_DP_H

/*
 * Directed Point: endpoints that are file descriptors, joined by directed edges.
 *
 *     int fd = dp_open(7);                          endpoint 7 of this process
 *     dp_target(fd, 1, 5);                          its edge leads to endpoint 5 of node 1
 *     dp_write(fd, "hello", 6);
 *
 *     char* text;                                   and there, at fd = dp_open(5):
 *     int length = dp_read(fd, &text);              read where it has arrived, nothing is copied
 *     dp_fsync(fd, 1);                              the oldest message is flushed
 *
 * A Directed Message goes to the endpoint <nid, dpid> that its header names. There it is copied
 * once, into the endpoint's token buffer pool: memory of fixed size, from which each message takes
 * as much as it is long. dp_read gives the messages in the order in which they came and frees
 * nothing; dp_fsync frees the oldest.
 *
 * Nodes         A NID is the number of a rank on the ring, so each process is a node of its own,
 *               and DPIDs are disjoint within it. (In the paper processes may share a node; then
 *               their DPIDs are disjoint. Directed point graphs, dp/graph.h, know nodes of several
 *               processes.) Nothing has to be configured: dp_open joins the ring of the
 *               environment, rmem(7).
 * Delivery      Raw, as in the paper: what finds no room in its pool is dropped, what is for no
 *               endpoint too; both are counted (dp_stat). From one endpoint to another in order.
 *               dp_reliable puts the Go-Back-N layer above: then all arrives, once, in order, and
 *               the sender waits for the receiver.
 * Waiting       dp_write never waits for a receiver, only for the network: while that is full, at
 *               most DP_FULL_NS, then -1 with ENOBUFS. dp_read waits for a message; while it does,
 *               it takes in those for other endpoints too, and so does a thread of the library
 *               while the program computes. With O_NONBLOCK set (fcntl(2)) neither waits.
 * Descriptors   A descriptor is one end of a socket pair. poll(2), epoll(7) and select(2) say that
 *               it is readable when a message waits; read(2) and write(2) work on it, with whole
 *               messages, also on a dup(2) of it, in a fork(2)ed child, and in a process that it
 *               was handed to (SCM_RIGHTS): these are not the endpoint's process, and the dp_ calls
 *               say EBADF there. close(2) of the last duplicate ends the endpoint; close those that
 *               have duplicates by dp_close, since to the dp_ calls a number that close(2) or
 *               dup2(2) has taken away names the endpoint until that ends. Each message is read
 *               once, in order, in whichever way. It is signalled only when the pool becomes
 *               non-empty while nobody is in dp_read, so exchanging messages by dp_read and
 *               dp_write alone makes no system call. An empty message is a read of 0 bytes; what
 *               write(2) cannot send is dropped and counted. write(2) and dp_write are not ordered
 *               to each other. On a simulated ring nobody serves descriptors: use the dp_ calls
 *               there. Nor is there a thread that takes messages in: dp_read does, and so do
 *               dp_write and dp_drain while they wait.
 * Threads       Any number, also on one endpoint. A message read is its reader's until it is
 *               flushed. Closing a descriptor while another thread is in a call on it makes that
 *               call fail with EBADF.
 * Deaths        dp_write to a dead rank is -1 with EHOSTDOWN; dp_read fails with it when all other
 *               ranks are gone.
 * Results       As system calls: -1 and errno. dp_last_error() says what dp_open and dp_graph_
 *               calls did not like.
 * Source        C.-L. Wang, A. Tam, B. Cheung, W. Zhu, D. Lee, "Directed Point: A Communication
 *               Subsystem for Commodity Supercomputing with Gigabit Ethernet". Its Table 1 has the
 *               seven prototypes below that are marked documented; results, errors and all others
 *               are a reconstruction.
 */

#include "rmem/version.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DP_API __attribute__((visibility("default")))
#else
#define DP_API
#endif

#define DP_MAX_DPID 65535  /* DPIDs are 0 to this */
#define DP_MAX_TARGETS 256 /* edges that leave one endpoint */
/* A token buffer pool, unless RMEM_DP_POOL or dp_mmap says another size. */
#define DP_POOL_BYTES 1048576
#define DP_FULL_NS 100000000 /* how long dp_write waits for a full network */

/* ---- Table 1 */

/* Documented: creates an endpoint and returns its descriptor. EADDRINUSE: this process has an
 * endpoint of that DPID. EINVAL: no DPID. EOPNOTSUPP: a fork(2)ed child is not on the ring. Else
 * what joining the ring has met; dp_last_error() says it. */
DP_API int dp_open(int dpid);

/* Documented: the next message. *address points to it in the pool, until it is flushed; returns its
 * length. O_NONBLOCK: 0 and a null address when none waits, with errno EAGAIN. EBADF, EFAULT;
 * EHOSTDOWN: nobody is left who could send. */
DP_API int dp_read(int fd, char** address);

/* Addition, for layers whose calls must not wait (MPI's device): dp_read with O_NONBLOCK, whatever
 * the descriptor's flags are, and without a system call. */
DP_API int dp_try_read(int fd, char** address);

/* Reconstruction of its members; documented is the name. */
typedef struct {
    void* base;  /* the pool: messages lie here, each behind its token  */
    size_t size; /* its bytes                                           */
} dpmmap_t;

/* Documented: associates a token buffer pool with the endpoint. Reconstruction: with `size` 0 it
 * tells base and size of the one there is; otherwise it makes one of that size, rounded up to
 * pages, and tells it. EBUSY: the pool holds messages, read or not. */
DP_API int dp_mmap(int fd, dpmmap_t* tbp);

/* Documented: closes the descriptor; the endpoint ends with the last of its duplicates. With the
 * Go-Back-N layer it waits first, DP_FULL_NS at most, until all has been acknowledged. The last
 * endpoint of a process leaves the ring. */
DP_API void dp_close(int fd);

/* Documented: sends a message, which may be used again at once; returns its length.
 *   ENOTCONN       no target yet
 *   EHOSTUNREACH   the target's NID is none of this ring's
 *   EINVAL         the target's DPID, or a length, that cannot be
 *   EMSGSIZE       longer than dp_container()
 *   EHOSTDOWN      the target's process is dead or has left (of several targets: one of them; the
 *                  others have got it)
 *   ENOBUFS        the network stayed full; EAGAIN with O_NONBLOCK
 *   ETIMEDOUT      the Go-Back-N layer has given the receiver up
 *   EBADF, EFAULT  no endpoint of this process; a null pointer with a length */
DP_API int dp_write(int fd, void* msg, int len);

/* Documented: flushes n messages. Reconstruction: the n oldest of those that were read; returns how
 * many there were. */
DP_API int dp_fsync(int fd, int n);

/* Documented: establishes the connection with the target endpoint, instead of all it had before.
 * What cannot be a target is said by the next dp_write. */
DP_API void dp_target(int fd, int nid, int dpid);

/* ---- Reconstruction: group operations */

/* Adds an edge, or deletes one. With several, dp_write is the root of a broadcast: one multicast,
 * whatever their number. The sink of a reduce needs no call: any number of endpoints may have the
 * same target. 0, or -1: EHOSTUNREACH, EINVAL, EEXIST, ENOENT,
 * ENOSPC: DP_MAX_TARGETS. */
DP_API int dp_target_add(int fd, int nid, int dpid);
DP_API int dp_target_remove(int fd, int nid, int dpid);

/* ---- Reconstruction: the Go-Back-N layer ("on top of DP", 5.2) */

/* Messages written from now on are numbered, kept until acknowledged, and sent again from the first
 * that was lost. 0: raw again, once all is acknowledged (EBUSY). The receiving endpoint needs no
 * call. What lies in its pool counts as arrived: it is acknowledged, at the latest when that
 * endpoint is closed, whether it was read or not. */
DP_API int dp_reliable(int fd, int on);

/* Waits until all that was written is acknowledged, at most `timeout_ns`: 0, or -1 with ETIMEDOUT,
 * EHOSTDOWN. */
DP_API int dp_drain(int fd, int64_t timeout_ns);

/* ---- Reconstruction: what is there */

DP_API int dp_nid(void);       /* of this process; -1 while no endpoint is open */
DP_API int dp_nids(void);      /* how many there are                            */
DP_API int dp_container(void); /* most bytes of a message                       */
DP_API const char* dp_last_error(void);

/* Counted since dp_open. What was lost: the dropped_ ones. Later versions may add members at the
 * end. */
typedef struct {
    uint64_t written;         /* messages sent, a multicast once                          */
    uint64_t arrived;         /* put into the pool                                        */
    uint64_t dropped_full;    /* no room in the pool (Go-Back-N: they come again)         */
    uint64_t dropped_network; /* not sent: the network stayed full                        */
    uint64_t dropped_writes;  /* of write(2): too long, no target, target dead            */
    uint64_t signals;         /* times the descriptor was made readable                   */
    uint64_t served_reads;    /* messages that read(2) took                               */
    uint64_t served_writes;   /* messages that write(2) gave                              */
    uint64_t again;           /* Go-Back-N: messages sent again                           */
    uint64_t timeouts;        /* Go-Back-N: times no answer came                          */
    uint64_t out_of_order;    /* Go-Back-N: arrived behind a gap, or twice; dropped       */
    uint64_t dropped_unknown; /* of the process: for an endpoint that is not there        */
    uint64_t dropped_corrupt; /* of the process: no Directed Messages                     */
} dp_stat_t;

/* Of an endpoint; fd -1: of all of the process, also those that are closed. `size` is
 * sizeof(dp_stat_t) as the program was compiled: it gets as many bytes, and zeros for members that
 * the library has not. EFAULT. */
DP_API int dp_stat_sized(int fd, dp_stat_t* stat, size_t size);
static inline int dp_stat(int fd, dp_stat_t* stat) {
    return dp_stat_sized(fd, stat, sizeof *stat);
}

/* Of this header, and of the library that the program runs with (rmem/version.h). */
#define DP_VERSION RMEM_VERSION
DP_API int dp_version(void);

#ifdef __cplusplus
}
#endif

#endif /* DP_DP_H */
