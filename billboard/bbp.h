/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BILLBOARD_BBP_H
#define BILLBOARD_BBP_H

/*
 * The Billboard protocol: messages over reflective memory.
 *
 * Each process (a rank) owns an equal part of the memory. To send, it posts the message once, in
 * its own part, and sets one flag word per receiver; a receiver reads the message where it was
 * posted and acknowledges with one word. Every word has one writer, so nothing is ever locked.
 *
 *     int rank, ranks;
 *     if (bbp_init(&rank, &ranks) < 0) { puts(bbp_last_error()); return 1; }
 *     if (rank == 0) bbp_send(1, "hello", 6);
 *     if (rank == 1) { char text[16]; size_t n; bbp_recv(0, text, sizeof text, &n); }
 *     bbp_finalize();
 *
 * Order         Messages from one sender to one receiver arrive in the order sent, whatever their
 *               sizes and whether sent alone or as a multicast. Nothing is promised between
 *               senders.
 * Delivery      Each message once, intact. A message outlives its sender's bbp_finalize; those
 *               of a killed sender are still delivered before BBP_EPEER is reported.
 * Waiting       A blocking call spins while there are processors to spare, then yields, then
 *               sleeps. A send waits while its receivers leave its buffers unread; two ranks that
 *               only send can wait for each other: use the try calls in such programs. The send of
 *               a message larger than a partition waits until its receivers have taken most of it,
 *               or all: those on other nodes may read it from this process's memory, past the ring
 *               (RMEM_BULK). Calls that do not wait (try, msgavail, probe, deadlines that have
 *               passed) and have found nothing give the processor to another rank where there are
 *               more ranks than processors, so a program that polls needs no yield of its own.
 * Dead peers    A call that needs a dead rank returns BBP_EPEER, never hangs. A stopped process is
 *               alive: only deadlines help. A death is noticed by a call that waits, or by one in
 *               64 tries to receive: messages sent in between are lost with the dead.
 * Returns       A rank that died or left can be started again, and sees nothing that was sent to
 *               its former incarnation. Each other rank that has noticed is told by BBP_EPEER once,
 *               by the next call that names the rank, before it can talk to it again: a receive
 *               gives all messages of the former incarnation, then BBP_EPEER, then those of the new
 *               one; a send and a barrier say BBP_EPEER at once. BBP_ANY names nobody: it gives the
 *               messages of the former incarnation and then those of the new one, and leaves
 *               BBP_EPEER to the next call that does name the rank, such as an answer to it.
 *               A returned rank's messages that do not fit beside their flag, and bbp_compose, wait
 *               until every live rank has noticed its return and released what it viewed of the
 *               former incarnation: any call that waits or tries notices, but a rank that computes
 *               for long without a bbp_ call holds them back. Sends with a deadline end with it.
 * Memory        A process may also open its node (rmem::Node::open, <rmem/node.hpp>), before
 *               bbp_init or after it: both are one rank then, which leaves the ring when both are
 *               closed.
 * Rings         A process may be in several rings, or in one as several ranks, by an endpoint for
 *               each (bbp_open).
 * Threads       One thread at a time may be inside a bbp_ call of a process, or a call of its node;
 *               the same for each endpoint and the node of its rank. Different endpoints are
 *               independent.
 * Fork          A fork()ed child is not on the ring: each call there is BBP_EINVAL, and touches
 *               nothing of the parent's. It may call bbp_init itself, with a rank of its own
 *               (RMEM_RANK).
 * Results       0 or a count on success, a negative BBP_E… code otherwise. bbp_last_error() gives
 *               the sentence for the last failed call: the object, what was found, what to do.
 * Source        V. Moorthy et al., "Low-Latency Message Passing on Workstation Clusters using
 *               SCRAMNet": bbp_init, bbp_send, bbp_recv, bbp_mcast and bbp_msgavail are the paper's
 *               five calls (it prints no prototypes: the arguments are a reconstruction); all the
 *               others are additions.
 */

#include "rmem/codes.h"
#include "rmem/version.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BBP_API __attribute__((visibility("default")))
#else
#define BBP_API
#endif

#define BBP_ANY (-1) /* receive from any rank that has something */

/* The codes of all C calls (rmem/codes.h); of these: */
enum {
    BBP_OK = RMEM_OK,
    BBP_EAGAIN = RMEM_EAGAIN, /* a try call that would have to wait                          */
    BBP_EINVAL = RMEM_EINVAL, /* an argument, or a setting in the environment, is not valid  */
    BBP_ERANK = RMEM_ERANK,   /* no such rank                                                */
    BBP_ESIZE = RMEM_ESIZE,   /* larger than the buffer, or too large to send                */
    BBP_EPEER = RMEM_EPEER,   /* a rank that this call needs is dead or has left             */
    BBP_ETIMEDOUT =
        RMEM_ETIMEDOUT,           /* the deadline passed                                         */
    BBP_ENOMEM = RMEM_ENOMEM,     /* no room: shared memory at the start, private memory later   */
    BBP_ESYS = RMEM_ESYS,         /* the system refused something; bbp_last_error() says what    */
    BBP_ECORRUPT = RMEM_ECORRUPT, /* shared memory holds values that no rank of this library     */
                                  /* writes                                                      */
    BBP_EVERSION = RMEM_EVERSION, /* the ring was made by another version or another layout      */
    BBP_EBUSY = RMEM_EBUSY        /* another live process has claimed this rank                  */
};

/* ---- Life cycle */

/* Joins the ring that the environment names (RMEM_RING, RMEM_RANK, RMEM_RANKS, …; see
 * bbp(7); ranks set by Hydra, PMI and Slurm are recognised too) and waits until every rank has
 * joined, at most RMEM_JOIN_TIMEOUT (default 30 s), or for nobody (RMEM_AWAIT=none). Either
 * pointer may be null. */
BBP_API int bbp_init(int* rank, int* nprocs);

/* Leaves the ring. Posted messages stay readable for the receivers. No other call may be under way,
 * in any thread. */
BBP_API int bbp_finalize(void);

/* ---- Endpoints */

/* One rank's end of a ring. Each call below takes an endpoint; null stands for the process's own,
 * that of bbp_init. bbp_open gives others, to be in several rings, or in one as several ranks; what
 * is said of a process above holds for each endpoint. Without `_on` the calls are on the process's
 * own: bbp_send(1, …) is bbp_send_on(NULL, 1, …). */
typedef struct bbp_endpoint bbp_endpoint;

/* Joins as bbp_init does, and stores the endpoint; null on failure. */
BBP_API int bbp_open(bbp_endpoint** endpoint);
/* The same with settings that the program says by itself (rmem/rmem.h):
 *
 *     rmem_options options = RMEM_OPTIONS;
 *     options.ring = "rig-2";
 *     bbp_open_with(&endpoint, &options);
 */
struct rmem_options;
BBP_API int bbp_open_with(bbp_endpoint** endpoint, const struct rmem_options* options);
/* Leaves the ring, as bbp_finalize does. Null is no failure, and leaves none. */
BBP_API int bbp_close(bbp_endpoint* endpoint);

/* Its own rank, and the number of ranks in its ring. */
BBP_API int bbp_rank_on(bbp_endpoint* endpoint);
BBP_API int bbp_ranks_on(bbp_endpoint* endpoint);

/* ---- Messages */

/* Sends `len` bytes to `dest` (oneself is allowed); returns when `buf` may be used again. */
BBP_API int bbp_send_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len);

/* Receives the next message of `src` (or of anyone: BBP_ANY) into `buf`; returns the sender's rank
 * and sets *len (if not null) to the message's size. A message larger than `cap` is BBP_ESIZE: *len
 * tells its size and the message stays. It also stays first in line for BBP_ANY, unless one in
 * several parts or set aside overtakes it: retry with *len until the call succeeds. */
BBP_API int bbp_recv_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len);

/* Sends one message to several ranks, each named once, by posting it once. When some are dead the
 * others still get it and the result is BBP_EPEER. */
BBP_API int bbp_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                         size_t len);

/* 1 when a message of `src` (or BBP_ANY) waits, 0 when none, negative on error. A receive is
 * immediate then, unless the message is larger than a partition: of that one only a part may be
 * there, and its sender may still take it back (its deadline passes) or die. A caller that must not
 * wait receives with bbp_tryrecv or bbp_recv_for anyway. */
BBP_API int bbp_msgavail_on(bbp_endpoint* endpoint, int src);

/* The size and sender of the message that the next bbp_recv(src, …) would return; BBP_EAGAIN when
 * none waits. The remarks of bbp_msgavail on messages larger than a partition hold here, too. *len
 * may be null. Returns the sender's rank: receive from it by name where it must be this message:
 * BBP_ANY gives one in several parts first if that is whole meanwhile. */
BBP_API int bbp_probe_on(bbp_endpoint* endpoint, int src, size_t* len);

/* As the three above, but BBP_EAGAIN instead of waiting. trysend and trymcast of a message that is
 * larger than a partition could never finish: BBP_ESIZE. */
BBP_API int bbp_trysend_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len);
BBP_API int bbp_trymcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                            size_t len);
BBP_API int bbp_tryrecv_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len);

/* As the blocking calls, but BBP_ETIMEDOUT after `timeout_ns` nanoseconds (0 or less: now). A send
 * whose deadline passes in the middle of a message larger than a partition takes it back: the
 * receiver drops the half and counts it. */
BBP_API int bbp_send_for_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len,
                            int64_t timeout_ns);
BBP_API int bbp_recv_for_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len,
                            int64_t timeout_ns);
BBP_API int bbp_mcast_for_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                             size_t len, int64_t timeout_ns);

/* ---- No copies */

/* Gives a buffer of `len` bytes in the own partition, to be filled in place and then posted with
 * bbp_post or bbp_post_mcast (exactly one of them, which ends its use) or given back with
 * bbp_discard. BBP_EAGAIN: no room until receivers have read; BBP_ESIZE: larger than a partition.
 * Posting waits while its receivers have too many messages unread. A post that ends with BBP_EAGAIN
 * (trypost) or BBP_ETIMEDOUT (post_for) has sent nothing: the buffer stays composed, as it was
 * filled, and is the caller's to post again or to discard. So it is after a refused argument. */
BBP_API int bbp_compose_on(bbp_endpoint* endpoint, size_t len, void** buf);
BBP_API int bbp_post_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len);
BBP_API int bbp_post_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                              size_t len);
BBP_API int bbp_trypost_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len);
BBP_API int bbp_trypost_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                                 size_t len);
BBP_API int bbp_post_for_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len,
                            int64_t timeout_ns);
BBP_API int bbp_post_mcast_for_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                                  size_t len, int64_t timeout_ns);
BBP_API int bbp_discard_on(bbp_endpoint* endpoint, void* buf);

/* Receives without copying: *data points to the message where the sender posted it, until
 * bbp_release(*data), which may come in any order. Returns the sender's rank. Messages larger than
 * a partition cannot be viewed: BBP_ESIZE (use bbp_recv). */
BBP_API int bbp_view_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len);
BBP_API int bbp_tryview_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len);
BBP_API int bbp_view_for_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len,
                            int64_t timeout_ns);
BBP_API int bbp_release_on(bbp_endpoint* endpoint, const void* data);

/* ---- Groups and barriers */

/* Waits until every rank has called it. */
BBP_API int bbp_barrier_on(bbp_endpoint* endpoint);
BBP_API int bbp_barrier_for_on(bbp_endpoint* endpoint, int64_t timeout_ns);

/* The same among `members` (which must include the caller); `id` < BBP_MAX_BARRIERS keeps barriers
 * of different groups apart, and an id always goes with one list of members. */
#define BBP_MAX_BARRIERS 64
BBP_API int bbp_barrier_group_on(bbp_endpoint* endpoint, const int* members, int n, unsigned id);
BBP_API int bbp_barrier_group_for_on(bbp_endpoint* endpoint, const int* members, int n, unsigned id,
                                     int64_t timeout_ns);

/* A rank joins and leaves groups by name (at most BBP_MAX_JOINED at a time); bbp_mcast_group sends
 * to every other rank that is in the group as the sender sees it now, and returns their number. */
#define BBP_MAX_JOINED 16
BBP_API int bbp_group_join_on(bbp_endpoint* endpoint, const char* name);
BBP_API int bbp_group_leave_on(bbp_endpoint* endpoint, const char* name);
BBP_API int bbp_mcast_group_on(bbp_endpoint* endpoint, const char* name, const void* buf,
                               size_t len);

/* ---- Waiting elsewhere */

/* A descriptor for poll, select or epoll: readable when a message may wait. Receive with
 * bbp_tryrecv until BBP_EAGAIN, which arms it again. Closed by bbp_finalize, or bbp_close. */
BBP_API int bbp_fd_on(bbp_endpoint* endpoint);

/* ---- The same on the process's own endpoint: no functions of the library, but of this header */

static inline int bbp_send(int dest, const void* buf, size_t len) {
    return bbp_send_on(NULL, dest, buf, len);
}
static inline int bbp_recv(int src, void* buf, size_t cap, size_t* len) {
    return bbp_recv_on(NULL, src, buf, cap, len);
}
static inline int bbp_mcast(const int* dests, int ndests, const void* buf, size_t len) {
    return bbp_mcast_on(NULL, dests, ndests, buf, len);
}
static inline int bbp_msgavail(int src) {
    return bbp_msgavail_on(NULL, src);
}
static inline int bbp_probe(int src, size_t* len) {
    return bbp_probe_on(NULL, src, len);
}
static inline int bbp_trysend(int dest, const void* buf, size_t len) {
    return bbp_trysend_on(NULL, dest, buf, len);
}
static inline int bbp_trymcast(const int* dests, int ndests, const void* buf, size_t len) {
    return bbp_trymcast_on(NULL, dests, ndests, buf, len);
}
static inline int bbp_tryrecv(int src, void* buf, size_t cap, size_t* len) {
    return bbp_tryrecv_on(NULL, src, buf, cap, len);
}
static inline int bbp_send_for(int dest, const void* buf, size_t len, int64_t timeout_ns) {
    return bbp_send_for_on(NULL, dest, buf, len, timeout_ns);
}
static inline int bbp_recv_for(int src, void* buf, size_t cap, size_t* len, int64_t timeout_ns) {
    return bbp_recv_for_on(NULL, src, buf, cap, len, timeout_ns);
}
static inline int bbp_mcast_for(const int* dests, int ndests, const void* buf, size_t len,
                                int64_t timeout_ns) {
    return bbp_mcast_for_on(NULL, dests, ndests, buf, len, timeout_ns);
}
static inline int bbp_compose(size_t len, void** buf) {
    return bbp_compose_on(NULL, len, buf);
}
static inline int bbp_post(int dest, void* buf, size_t len) {
    return bbp_post_on(NULL, dest, buf, len);
}
static inline int bbp_post_mcast(const int* dests, int ndests, void* buf, size_t len) {
    return bbp_post_mcast_on(NULL, dests, ndests, buf, len);
}
static inline int bbp_trypost(int dest, void* buf, size_t len) {
    return bbp_trypost_on(NULL, dest, buf, len);
}
static inline int bbp_trypost_mcast(const int* dests, int ndests, void* buf, size_t len) {
    return bbp_trypost_mcast_on(NULL, dests, ndests, buf, len);
}
static inline int bbp_post_for(int dest, void* buf, size_t len, int64_t timeout_ns) {
    return bbp_post_for_on(NULL, dest, buf, len, timeout_ns);
}
static inline int bbp_post_mcast_for(const int* dests, int ndests, void* buf, size_t len,
                                     int64_t timeout_ns) {
    return bbp_post_mcast_for_on(NULL, dests, ndests, buf, len, timeout_ns);
}
static inline int bbp_discard(void* buf) {
    return bbp_discard_on(NULL, buf);
}
static inline int bbp_view(int src, const void** data, size_t* len) {
    return bbp_view_on(NULL, src, data, len);
}
static inline int bbp_tryview(int src, const void** data, size_t* len) {
    return bbp_tryview_on(NULL, src, data, len);
}
static inline int bbp_view_for(int src, const void** data, size_t* len, int64_t timeout_ns) {
    return bbp_view_for_on(NULL, src, data, len, timeout_ns);
}
static inline int bbp_release(const void* data) {
    return bbp_release_on(NULL, data);
}
static inline int bbp_barrier(void) {
    return bbp_barrier_on(NULL);
}
static inline int bbp_barrier_for(int64_t timeout_ns) {
    return bbp_barrier_for_on(NULL, timeout_ns);
}
static inline int bbp_barrier_group(const int* members, int n, unsigned id) {
    return bbp_barrier_group_on(NULL, members, n, id);
}
static inline int bbp_barrier_group_for(const int* members, int n, unsigned id,
                                        int64_t timeout_ns) {
    return bbp_barrier_group_for_on(NULL, members, n, id, timeout_ns);
}
static inline int bbp_group_join(const char* name) {
    return bbp_group_join_on(NULL, name);
}
static inline int bbp_group_leave(const char* name) {
    return bbp_group_leave_on(NULL, name);
}
static inline int bbp_mcast_group(const char* name, const void* buf, size_t len) {
    return bbp_mcast_group_on(NULL, name, buf, len);
}
static inline int bbp_fd(void) {
    return bbp_fd_on(NULL);
}

/* ---- Errors */

/* A code's meaning. */
BBP_API const char* bbp_strerror(int code);

/* The sentence for this thread's last failed call. The address stays the same until the
 * thread ends; the text changes with the next call that fails. */
BBP_API const char* bbp_last_error(void);

/* ---- Version */

/* Of this header, and of the library that the program runs with (rmem/version.h). */
#define BBP_VERSION RMEM_VERSION
BBP_API int bbp_version(void);

#ifdef __cplusplus
}
#endif

#endif /* BILLBOARD_BBP_H */
