/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_FM2_H
#define FM_FM2_H

/*
 * Illinois Fast Messages 2.x: messages as streams, written in pieces and read in pieces.
 *
 *     static int hello(FM_stream *s, unsigned sender) {
 *         char name[8];
 *         FM_receive(name, s, sizeof name);
 *         return FM_CONTINUE;
 *     }
 *
 *     FM_initialize();
 *     const ULONG id = FM_register_handler(FM_ANY_ID, hello);
 *     if (FM_nodeid == 0) {
 *         FM_stream *s = FM_begin_message(1, 8, id);
 *         FM_send_piece(s, "good day", 8);
 *         FM_end_message(s);
 *     } else while (FM_extract(~0UL) == 0) {}
 *
 * Delivery      Reliable, and in the order in which a node began its messages to another
 *               (documented: ordered).
 * Flow          Credits: the receiver's buffer, counted in packets, is divided among the nodes that
 *               may send: 256 packets, of which half are divided at the start
 *               (FM_reallocate_credit). A packet is a sixteenth of a data partition
 *               (RMEM_PARTITION), 4 KB at most. A sender that has used its share up waits, until
 *               the receiver has processed some.
 * Sending       A message is begun with an upper bound of its length, written in any number of
 *               pieces, and ended. Pieces are gathered into packets; what fills one leaves before
 *               FM_end_message. One thread at a time sends: the others get NULL from
 *               FM_begin_message. Outside of handlers a send that waits processes messages as
 *               FM_extract does (documented: "FM itself may call FM_extract").
 * Handlers      Called by id, in FM_extract and in sends that wait, with the first packet of their
 *               message. FM_receive suspends them until the rest comes; others run meanwhile. So a
 *               handler does not run atomically, and what it did not receive when it returns is
 *               discarded (documented, all three). A handler that was suspended has a stack of 256
 *               KB, and may go on in another thread, if several call FM_extract.
 *               A handler may send, but never waits: FM_begin_message gives it NULL (EAGAIN) unless
 *               all packets of that length can leave without it. To spin on that inside a handler
 *               is incorrect (documented); a very large message may never succeed there
 *               (documented).
 * Dead nodes    What a suspended handler still waits for, of a node that has died, is missing:
 *               FM_receive returns with ENODATA. An open stream to one can be written and ended,
 *               and leads nowhere (EHOSTDOWN).
 * Threads       FM_extract, and begin, piece and end of one message by one thread, from any threads
 *               (documented: thread safe). The first of these calls after a second thread was
 *               started must not run at the same time as another call into this library or the
 *               billboard.
 * Source        The manuals of FM 2.0 and HPVM 1.9, as far as they are public. Results that they do
 *               not tell, errno, and FM_ANY_ID's value are a reconstruction.
 */

#include "fm.h"

typedef struct FM_stream FM_stream; /* documented, opaque */

/* Documented: a handler, and its results. */
typedef int FM_handler(FM_stream*, unsigned);
enum {
    FM_QUIT = 0,    /* FM_extract returns early */
    FM_CONTINUE = 1 /* FM_extract goes on */
};

#define FM_ANY_ID (~0UL) /* documented name: an id that is not in use */

#ifdef __cplusplus
extern "C" {
#endif

/* Documented. Returns the id; registering again replaces; a handler may have several ids.
 * Reconstruction: may also be called before FM_initialize; FM_ANY_ID with EINVAL if `id` is not
 * below FM_MAX_HANDLERS, or no id is left. A message for an id that is not registered is dropped,
 * with the line "FM: Received invalid handler ID xxx from node yyy" on stderr unless FM_QUIET is
 * set (documented). */
FM_API ULONG FM_register_handler(ULONG id, FM_handler* handler) FM_SYMBOL("FM2_register_handler");

/* Documented: the number of senders is final, and credit may be divided again. Here: among nodes
 * that have called FM_initialize and are alive. Without it each node of the ring has an equal
 * share. */
FM_API void FM_reallocate_credit(void) FM_SYMBOL("FM2_reallocate_credit");

/* Documented. At most `length` bytes for a handler of `recipient`, which may be the own node. NULL:
 * inside a handler no room (EAGAIN), another thread sends (EBUSY), or an error of <fm/fm.h>. */
FM_API FM_stream* FM_begin_message(ULONG recipient, ULONG length, ULONG handler)
    FM_SYMBOL("FM2_begin_message");

/* Documented. Any number of times, any alignment; the bytes must not change until FM_end_message.
 * More than was announced is erroneous (documented): here not sent, EMSGSIZE. */
FM_API void FM_send_piece(FM_stream* stream, void* buffer, ULONG length)
    FM_SYMBOL("FM2_send_piece");

/* Documented. Ends the message, which may be shorter than announced, and lets other threads
 * send. */
FM_API void FM_end_message(FM_stream* stream) FM_SYMBOL("FM2_end_message");

/* Additions, for layers whose calls must not wait (MPI's device). FM_try_begin_message treats its
 * message as a handler's: NULL with EAGAIN unless all its packets can leave without waiting; what
 * the network has no room for then is kept, and leaves in FM_extract. One that fits a packet, so
 * one of FM_packet_bytes() at most, finds room sooner or later. FM_packets_kept says how many
 * packets are kept. Both are 0 before FM_initialize. */
FM_API FM_stream* FM_try_begin_message(ULONG recipient, ULONG length, ULONG handler)
    FM_SYMBOL("FM2_try_begin_message");
FM_API ULONG FM_packet_bytes(void) FM_SYMBOL("FM2_packet_bytes");
FM_API ULONG FM_packets_kept(void) FM_SYMBOL("FM2_packets_kept");

/* Documented: processes messages, until about `maxbytes` have been, or there are none; whole
 * packets, so it may exceed that by one; 0: none. Reconstruction of the result: the bytes of the
 * packets processed, one at least for each, at most INT_MAX; -1 with errno where there was none,
 * but a failure to tell of (<fm/fm.h>). Inside a handler: 0. */
FM_API int FM2_extract(ULONG maxbytes);

/* Documented. Only inside a handler, only of its own stream: the next `length` bytes of the
 * message. Reconstruction: where the message has fewer, the rest of the buffer is left as it is,
 * and errno is ENODATA. */
FM_API void FM_receive(void* buffer, FM_stream* stream, unsigned length) FM_SYMBOL("FM2_receive");

#ifdef __cplusplus
}
extern "C++" FM_API int FM_extract(ULONG maxbytes) FM_SYMBOL("FM2_extract");
#elif defined(FM_FM1_H)
#include "both.h"
#else
FM_API int FM_extract(ULONG maxbytes) FM_SYMBOL("FM2_extract");
#endif

#endif
