/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_FM_H
#define FM_FM_H

/*
 * What Fast Messages 1.0 (<fm/fm1.h>) and 2.x (<fm/fm2.h>) have in common: start, end, who is
 * there. Programs include one of those, or both.
 *
 * Start         Each node (a rank of the ring) calls FM_initialize, which joins the ring that the
 *               environment names (RMEM_RING, RMEM_RANK, RMEM_RANKS, …; see rmem(7), or let
 *               rmem-run(1) set it) and waits until all ranks have joined. No configuration file.
 * Errors        FM defines none. Here a call that fails sets errno, changes nothing else, and
 *               leaves errno alone if it succeeds; bbp_last_error() of <billboard/bbp.h> has the
 *               sentence.
 *                 ENOTCONN    FM_initialize has not been called, or has failed; in a fork()ed child
 *                 EINVAL      no such node, handler, parameter; a null pointer with a size
 *                 EMSGSIZE    larger than the limit, or than was announced
 *                 EHOSTDOWN   the node has died or left; what was on its way to it is lost
 *                 ENOEXEC     the node runs another binary, in which a pointer to a handler means
 *                             something else
 *                 EBUSY       another thread is sending a message; FM_finalize inside a handler
 *                 EAGAIN      no room that could be had without waiting, inside a handler
 *                 ENODATA     a handler has asked for more than its message holds
 *                 EISCONN     FM_initialize was called before; parameters are set before it
 *               and of FM_initialize alone: EADDRINUSE, another process has this rank; ETIMEDOUT,
 *               not all ranks have come in time; EINVAL, the environment is not valid;
 *               EPROTO, another version of the library; ENOMEM; EIO, anything else.
 *               What a program must hear of without looking at errno is also printed on stderr, in
 *               a line that begins with "FM: ", unless FM_QUIET is set.
 * Dead nodes    Each node that dies, or leaves while something is on the way to it or from it, is
 *               told once: by the line "FM: node 3 has died …", which counts what was lost with it,
 *               and by a call of FM_extract that returns -1 with EHOSTDOWN when it found nothing
 *               else. Sends to a dead node, or one that has left, fail with EHOSTDOWN. A node that
 *               is started again is a new one and can be sent to.
 * Fork          A fork()ed child takes no part: each call there fails with ENOTCONN, until it calls
 *               FM_initialize as a rank of its own.
 * Handlers that never return are the program's affair, but visible: FM_count(node,
 *               FM_HANDLERS_ENTERED) stays ahead of FM_HANDLERS_LEFT, for all nodes that FM_count
 *               can see.
 * Source        S. Pakin, M. Lauria, A. Chien: "High Performance Messaging on Workstations:
 *               Illinois Fast Messages (FM) for Myrinet"; the manuals of FM 2.0 and HPVM 1.9.
 *               "Documented" and "reconstruction" below say which names are theirs.
 */

#include "rmem/version.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FM_API __attribute__((visibility("default")))
/* The historic names, each over a symbol of its own version, so that both can be linked into one
 * program. */
#define FM_SYMBOL(name) __asm__(name)
#else
#error "Fast Messages needs a compiler with symbol names of choice: GCC or Clang"
#endif

typedef unsigned long ULONG; /* documented (2.x) */

/* Documented (2.x), reconstruction for 1.0: set by FM_initialize. */
FM_API extern ULONG FM_nodeid;   /* of this process, from 0 */
FM_API extern ULONG FM_numnodes; /* how many there are; 0 while FM_initialize has not succeeded */

/* Documented (2.x). Joins; both versions are ready then. */
FM_API void FM_initialize(void);

/* Reconstruction. Waits until all that was sent has been accepted by nodes that are alive, then
 * leaves. Handlers that were suspended in FM_receive are not resumed. Messages not extracted are
 * lost. FM_initialize may be called again, best once all have left: until then a node's messages
 * come to whichever incarnation the receiver is in. */
FM_API void FM_finalize(void);

/* What can be set before FM_initialize, by FM_set_parameter(parameter, value). */
enum {
    FM_QUIET = 1,        /* documented: print nothing; no value */
    FM_MAX_HANDLERS = 2, /* documented: int, ids are below it, 1 to 65535 (1024) */
    FM_GRM_NAME = 3,     /* documented: const char *; no effect, the environment names the ring */
    FM_GRM_PORT = 4,     /* documented: int; no effect */
    FM_CM_PORT = 5,      /* documented: int; no effect */
    FM_KEY_NAME = 6,     /* documented: const char *; no effect */
    /* reconstruction: int, FM 1.0's network window in frames, 1 to 256 (128) */
    FM_REJECT_QUEUE = 16,
    /* reconstruction: int, FM 1.0's receive queue in frames, 1 to 65536 (256) */
    FM_HOST_RECEIVE_QUEUE = 17
};

/* Documented (2.x); the numbers of the parameters are a reconstruction. */
FM_API void FM_set_parameter(int parameter, ...);

/* Reconstruction: what has happened at a node, since it was first started. */
enum FM_counter {
    FM_HANDLERS_ENTERED,   /* handlers called */
    FM_HANDLERS_LEFT,      /* handlers that have returned */
    FM_FRAMES_REJECTED,    /* 1.0: frames returned to their senders: the receive queue was full */
    FM_FRAMES_RETURNED,    /* 1.0: own frames that came back */
    FM_FRAMES_RESENT,      /* 1.0: sent again */
    FM_ACKS_ALONE,         /* 1.0: acknowledgements in a frame of their own */
    FM_SENDS_WAITING,      /* sends that had to wait */
    FM_FRAMES_LOST,        /* 1.0: frames that a node had not accepted when it died */
    FM_MESSAGES_CUT,       /* 2.x: messages whose sender died before their end */
    FM_HANDLERS_SUSPENDED, /* 2.x: times a handler had to wait in FM_receive */
    FM_CREDITS_ALONE,      /* 2.x: credit in a frame of its own */
    FM_INVALID_HANDLERS,   /* messages to a handler that there is not; dropped */
    FM_FOREIGN_BINARIES,   /* nodes found to run another binary */
    FM_CORRUPT,            /* frames that no node of this library sends; dropped */
    FM_NODES_LOST,         /* nodes found dead or gone */
    FM_COUNTERS            /* how many there are: it grows with the list */
};

/* Reconstruction: a counter of this node, or of another one that shares its memory on this host,
 * readable while that is stuck: all nodes on links direct and ring, on link udp those of the own
 * node of the ring, in the simulator none. -1: none that can be seen here. */
FM_API long long FM_count(ULONG node, enum FM_counter counter);

/* Addition: of this header, and of the library that the program runs with (rmem/version.h). */
#define FM_VERSION RMEM_VERSION
FM_API int FM_version(void);

#ifdef __cplusplus
}
#endif

#endif
