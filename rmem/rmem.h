/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMEM_RMEM_H
#define RMEM_RMEM_H

/*
 * Reflective memory in C: a node is one card in the ring, as its programs see it.
 *
 *     rmem_node* node;
 *     if (rmem_open(&node) < 0) { puts(rmem_last_error()); return 1; }
 *     rmem_write_word(node, 0x100, 42);             // appears at 0x100 of every other bank
 *     uint32_t altitude = rmem_load(node, 0x200);   // a load from the own bank
 *     rmem_close(node);
 *
 * Order         Every other node sees one node's writes in the order in which they were made.
 *               Writes of different nodes may arrive in different orders at different nodes, and
 *               two writers of one byte may leave banks that differ: that is the hardware. Inside
 *               one write there is no order: a flag is a write of its own.
 * Words         The unit is a word of 4 bytes at a multiple of 4, which is never seen in part. A
 *               write of part of a word stores these bytes everywhere, so the bytes of a word may
 *               have several writers; under the timing of a card that sends whole words (words=
 *               in rmem(7)) the rest goes along as the own bank has it.
 * Room          A write never waits: where the outbound queue is full it is RMEM_EAGAIN, and
 *               nothing is written. Call rmem_poll and try again.
 * Waiting       Times are nanoseconds from the call on: 0 or less is now, RMEM_FOREVER no limit.
 * Progress      Calls that wait or look bring in what others write. A program that reads by plain
 *               loads (rmem_bank) or computes is served by a thread of the library.
 * Dropped       On link udp the others may drop a node that was silent for too long. Its writes
 *               are RMEM_EPEER from then on; close it and open it once more.
 * Rings         A process may open several nodes, of one ring or of several
 *               (rmem_open_with), and send messages besides (billboard/bbp.h).
 * Threads       One thread at a time may be inside a call of a node, but rmem_load, rmem_read,
 *               rmem_snapshot, rmem_poll and loads through rmem_bank: any. Different nodes are
 *               independent.
 * Fork          In a fork()ed child rmem_id, rmem_rank, rmem_size, rmem_is_alive, rmem_is_present
 *               and rmem_counter answer; every other call is RMEM_EINVAL, and nothing of the
 *               parent's is touched. The child may open a node of its own, and closes the
 *               parent's at no cost.
 * Results       0 or more is success, a negative RMEM_E… code (rmem/codes.h) failure. The sentence
 *               of rmem_last_error() names the object, what was found, and what to do.
 * Source        SCRAMNet+ and GT200: memory, interrupts, write-me-last, data filter. The C++
 *               interface, rmem/node.hpp, is the same node; its header has the contract in full.
 */

#include "rmem/codes.h"
#include "rmem/version.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef RMEM_API
#if defined(__GNUC__)
#define RMEM_API __attribute__((visibility("default")))
#else
#define RMEM_API
#endif
#endif

#define RMEM_FOREVER INT64_MAX /* as a time: no limit */

typedef struct rmem_node rmem_node;

/* ---- Opening */

/* Joins the ring that the environment names (RMEM_RING, RMEM_NODE, …; rmem(7)), makes it if this
 * process is the first, and stores the node. Waits until all nodes have come (RMEM_AWAIT: all or
 * none; all if unset), at most RMEM_JOIN_TIMEOUT (default 30 s): so who is ready first does not
 * take the memory along. On failure *node is null. */
RMEM_API int rmem_open(rmem_node** node);

/* What a program says by itself. What it leaves open (null, negative numbers, 0 of counts and
 * sizes) is as the environment says, or the ring that is there.
 *
 *     rmem_options options = RMEM_OPTIONS;
 *     options.ring = "rig-2";
 *     rmem_open_with(&node, &options);
 */
typedef struct rmem_options {
    size_t size;      /* of this struct: a newer library knows what an older program left out */
    const char* ring; /* RMEM_RING                                                           */
    const char* link; /* RMEM_LINK: "direct", "ring", "udp" or "fabric"                      */
    int node;         /* RMEM_NODE, from 0                                                   */
    int nodes;        /* RMEM_NODES                                                          */
    int rank;         /* RMEM_RANK, from 0; RMEM_GUEST                                       */
    int ranks;        /* RMEM_RANKS                                                          */
    uint64_t memory_bytes; /* RMEM_SIZE                                                           */
    int64_t timeout_ns;    /* RMEM_JOIN_TIMEOUT                                                   */
    const char* const* settings; /* further ones, "RMEM_TIMING=gt200", and a null at the end      */
    int await;                   /* RMEM_AWAIT: RMEM_AWAIT_ALL or RMEM_AWAIT_NONE; 0: as that     */
                                 /* says, and if it does not, none where node or rank is given:   */
                                 /* a process opens several nodes one after the other             */
} rmem_options;
enum { RMEM_AWAIT_ALL = 1, RMEM_AWAIT_NONE = 2 };
/* As options.rank: a program of the node beside its ranks, of which 64 find room. It reads, writes
 * and is interrupted as they are, and has no messages (bbp.h). RMEM_RANK=guest. */
#define RMEM_GUEST (-2)
#define RMEM_OPTIONS \
    { sizeof(rmem_options), NULL, NULL, -1, 0, -1, 0, 0, 0, NULL, 0 }

RMEM_API int rmem_open_with(rmem_node** node, const rmem_options* options);

/* Waits until a program has come to each node; one that has left since has come, too.
 * RMEM_ETIMEDOUT, with the nodes that are missing; RMEM_EPEER: the others have dropped this one. */
RMEM_API int rmem_await(rmem_node* node, int64_t timeout_ns);

/* Leaves the ring. What was written before reaches the others. Null is no failure. No other call
 * with the node may be under way, in any thread. */
RMEM_API int rmem_close(rmem_node* node);

/* ---- What it is */

RMEM_API int rmem_id(const rmem_node* node);      /* the node's number in the ring               */
RMEM_API int rmem_rank(const rmem_node* node);    /* this process's; of a guest a larger one     */
RMEM_API int rmem_nodes(const rmem_node* node);   /* of the ring                                 */
RMEM_API int rmem_ranks(const rmem_node* node);   /* of the ring                                 */
RMEM_API size_t rmem_size(const rmem_node* node); /* bytes of the user's memory, from offset 0   */

/* 1 when a live process is that rank, else 0. */
RMEM_API int rmem_is_alive(const rmem_node* node, int rank);
/* 1 when a node takes part: a program of it runs, or `rmem node` keeps it; else 0. */
RMEM_API int rmem_is_present(const rmem_node* node, int other);
/* 1 while the others hear this node, else 0, for good. */
RMEM_API int rmem_is_member(const rmem_node* node);

/* ---- Memory */

/* The own bank, for loads of any kind from now on: null on failure. For stores: rmem_stores. */
RMEM_API const void* rmem_bank(rmem_node* node);

/* The word; the latest that has arrived. 0 for an offset that is refused (rmem_last_error). */
RMEM_API uint32_t rmem_load(rmem_node* node, size_t offset);
RMEM_API int rmem_read(rmem_node* node, size_t offset, void* to, size_t bytes);

RMEM_API int rmem_write(rmem_node* node, size_t offset, const void* from, size_t bytes);
RMEM_API int rmem_write_word(rmem_node* node, size_t offset, uint32_t value);
/* Some bytes of the word at `offset`, of `value`, as one write: a bit of `bytes` for each, 1 for
 * that at `offset`, 8 for that at `offset` + 3. */
RMEM_API int rmem_write_part(rmem_node* node, size_t offset, uint32_t value, unsigned bytes);

/* Publishes a value of any size, for readers that never see it in part, and reads it. At `offset`
 * are RMEM_PUBLISHED_BYTES(bytes): a word with the number of the publication, the value from
 * `offset` + 4 on in whole words, and the number once more; 0 is none. A block has one writer at a
 * time. RMEM_EAGAIN of publish: no room, and nothing is written; of snapshot: nothing was published
 * there, or its writer stays in the middle, or died there. Then what is at `to` is nothing. */
#define RMEM_PUBLISHED_BYTES(bytes) (((bytes) + 3) / 4 * 4 + 8)
RMEM_API int rmem_publish(rmem_node* node, size_t offset, const void* from, size_t bytes);
RMEM_API int rmem_snapshot(rmem_node* node, size_t offset, void* to, size_t bytes);

/* Waits until every live node has all own writes; RMEM_ETIMEDOUT. RMEM_ALONE, which is success:
 * no other node is there, so nobody else has them. */
#define RMEM_ALONE 1
RMEM_API int rmem_flush(rmem_node* node, int64_t timeout_ns);

/* Waits until the word differs from `old`; RMEM_ETIMEDOUT. *now (if not null) is what it holds at
 * the end, either way. */
RMEM_API int rmem_wait_change(rmem_node* node, size_t offset, uint32_t old, uint32_t* now,
                              int64_t timeout_ns);

/* Brings in what is due. */
RMEM_API int rmem_poll(rmem_node* node);

/* ---- Plain stores */

enum {
    RMEM_STORES_DEFAULT = 0, /* as RMEM_STORES says; unset: instrumented in a program of       */
                             /* rmem-cc, else exact on x86-64, else scan                       */
    RMEM_STORES_EXACT = 1,   /* each store, in program order, whatever the instruction         */
    RMEM_STORES_INSTRUMENTED =
        2,               /* each store of code that rmem-cc has compiled                   */
    RMEM_STORES_SCAN = 3 /* what has changed since the last look, some microseconds ago    */
};

/* Stores in *memory the user's memory, from offset 0, for loads and for stores that travel as
 * rmem_write's do, without a call. On `direct` it is the bank: a store costs what a store costs,
 * and wakes and interrupts nobody. On other links stores are captured, in the way `mode` says, for
 * as long as the node is open; any thread may store, beside the calls of the node. What finds no
 * room waits for it. Asked for again it is the same memory.
 *   exact         some microseconds a store; several bytes that one instruction stores are one
 *                 write. The system cannot store there: read(2) into it is EFAULT
 *   scan          nothing; a thread of the library finds what has changed, some 50 microseconds
 *                 later. What was replaced by then does not travel, and there is no order, but for
 *                 rmem_set_sync_words
 * A store of a fork()ed child ends the child.
 * How they differ, and which to take: rmem_stores(3). */
RMEM_API int rmem_stores(rmem_node* node, int mode, void** memory);

/* Of scan, after rmem_stores: whole words that leave after all other stores that were made before
 * them, and may be flags. In the other ways each store leaves in its turn. */
RMEM_API int rmem_set_sync_words(rmem_node* node, size_t offset, size_t bytes);

/* ---- Card options */

/* The own bank shows an own write only when it has come round the ring. No-op on `direct`. */
RMEM_API int rmem_set_write_me_last(rmem_node* node, int on);
/* Words that a write does not change are not sent (interrupt-marked ones always are). */
RMEM_API int rmem_set_data_filter(rmem_node* node, int on);

/* ---- Interrupts */

enum {
    RMEM_WORD_WRITTEN = 0, /* a watched word was written                                     */
    RMEM_SENT = 1,         /* a node has sent it to this one                                 */
    RMEM_SENT_TO_ALL = 2   /* a node has sent it to all others                               */
};

typedef struct rmem_interrupt {
    uint64_t offset; /* of the word that was written; of one that was sent its number        */
    uint32_t value;  /* what was written, or sent                                            */
    uint32_t origin; /* the node that wrote or sent                                          */
    uint64_t missed; /* how many were lost since the one taken before: 1024 are kept         */
    uint32_t kind;   /* RMEM_WORD_WRITTEN, RMEM_SENT or RMEM_SENT_TO_ALL                     */
    uint32_t reserved;
} rmem_interrupt;

enum {
    RMEM_ANY_WRITE = 0, /* every write of another node to a watched word raises an interrupt */
    RMEM_MARKED = 1     /* those do to which their writer has marked the word (rmem_mark)    */
};

/* Whole words of the memory; watching again replaces the trigger. */
RMEM_API int rmem_watch(rmem_node* node, size_t offset, size_t bytes, int trigger);
RMEM_API int rmem_unwatch(rmem_node* node, size_t offset, size_t bytes);
/* Own writes to these words carry an interrupt. */
RMEM_API int rmem_mark(rmem_node* node, size_t offset, size_t bytes);
RMEM_API int rmem_unmark(rmem_node* node, size_t offset, size_t bytes);

/* Sends an interrupt to a node, or to RMEM_ALL_NODES but this one; oneself gets none. It has a
 * number, below RMEM_INTERRUPT_NUMBERS, and a value, belongs to no word of the memory, and arrives
 * after what was written before. RMEM_EAGAIN as rmem_write. */
#define RMEM_ALL_NODES (-1)
#define RMEM_INTERRUPT_NUMBERS 40
RMEM_API int rmem_send_interrupt(rmem_node* node, int to, unsigned number, uint32_t value);
/* The numbers of sent interrupts that raise here, bit n for number n; replaces the last. At first
 * there are none. */
RMEM_API int rmem_accept_interrupts(rmem_node* node, uint64_t numbers);

/* Waits for the oldest interrupt; RMEM_ETIMEDOUT. */
RMEM_API int rmem_next_interrupt(rmem_node* node, rmem_interrupt* interrupt, int64_t timeout_ns);

/* A descriptor for poll, select or epoll: readable while interrupts wait. Take them with
 * rmem_next_interrupt(node, &i, 0) until RMEM_ETIMEDOUT. Closed by rmem_close. */
RMEM_API int rmem_interrupt_fd(rmem_node* node);

/* Has a thread of the library call `function` for each interrupt from now on; null ends that. The
 * function must not close the node; the one that was replaced may still be running. */
RMEM_API int rmem_on_interrupt(rmem_node* node,
                               void (*function)(void* with, const rmem_interrupt* interrupt),
                               void* with);

/* ---- Counters and times */

/* By its name in rmem(1)'s `rmem info`, such as "writes_sent": of this rank's sends and of its
 * node's bank. */
RMEM_API int rmem_counter(const rmem_node* node, const char* name, uint64_t* value);
/* The names: that of `index` from 0 on; null behind the last. */
RMEM_API const char* rmem_counter_name(unsigned index);

/* The longest time a write may take to another node; 0: nothing is promised. */
RMEM_API int64_t rmem_bound_ns(const rmem_node* node);
/* What `permille` of the measured propagations at this node did not exceed (500: the median). */
RMEM_API int64_t rmem_propagation_ns(const rmem_node* node, unsigned permille);

/* ---- Errors and version */

RMEM_API const char* rmem_strerror(int code);

/* The sentence for this thread's last failed call, also of other C calls of this project. The
 * address stays the same until the thread ends; the text changes with the next call that fails. */
RMEM_API const char* rmem_last_error(void);

/* RMEM_VERSION of the library that the program runs with. */
RMEM_API int rmem_version(void);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_RMEM_H */
