/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_FM1_H
#define FM_FM1_H

/*
 * Illinois Fast Messages 1.0: short messages that carry a pointer to their handler.
 *
 *     static void hello(int a, int b, int c, int d) { … }
 *
 *     FM_initialize();
 *     if (FM_nodeid == 0) FM_send_4(1, hello, 1, 2, 3, 4);
 *     else while (FM_extract() == 0) {}
 *     FM_finalize();
 *
 * Delivery      Each message once, intact. NOT in order: a frame that finds the receiver's queue
 *               full is returned to its sender, which sends it again, while later ones may have
 *               found room.
 * Flow          Each frame sent holds a slot of the sender's reject queue (the paper's "network
 *               window", for all destinations together) until its receiver has accepted it.
 *               Acknowledgements are combined and travel with data. Neither queue grows with the
 *               number of nodes. A node that makes no call takes nothing over: until it does, the
 *               network holds few frames for it (six from each other node in the usual layout), and
 *               then their senders wait.
 * Progress      In FM_extract, and in sends that wait: both first take over everything undelivered,
 *               and send again what was returned. A send waits while the reject queue or the
 *               network is full. Outside of handlers it then processes messages, as FM_extract does
 *               (reconstruction: the paper does not say), so that nodes which only send do not wait
 *               for each other. Inside a handler it takes messages over without processing them:
 *               handlers that wait for each other wait forever, which the paper leaves to the
 *               programmer. FM_SENDS_WAITING shows it.
 * Handlers      Run in FM_extract and in sends that wait, one after the other; they may send, and
 *               may call FM_extract, which then processes further messages within them. A pointer
 *               travels as an offset within its program or shared library, so nodes may be
 *               processes started apart, wherever their images lie. All run one binary: its build
 *               id is exchanged by FM_initialize, and a node that runs another one is told of and
 *               refused (ENOEXEC). Libraries loaded after FM_initialize cannot hold handlers.
 * Threads       One at a time may be inside a call.
 * Source        The paper's Table 1: FM_send_4, FM_send, FM_extract with these arguments; their
 *               types and results, and start and end (<fm/fm.h>), are a reconstruction.
 */

#include "fm.h"

#define FM_MAX_SIZE 128 /* documented: 32 words */

/* Reconstruction of both types. `buf` is the handler's until it returns, and aligned to 4 bytes. */
typedef void (*FM_handler4)(int i0, int i1, int i2, int i3);
typedef void (*FM_handlerN)(void* buf, int size);

#ifdef __cplusplus
extern "C" {
#endif

/* Documented. Four words to a handler of `dest`, which may be the own node. Returns when it is on
 * its way. */
FM_API void FM_send_4(int dest, FM_handler4 handler, int i0, int i1, int i2, int i3)
    FM_SYMBOL("FM1_send_4");

/* Documented. Up to FM_MAX_SIZE bytes; `buf` may be used again at once. Zero bytes are a message
 * too. */
FM_API void FM_send(int dest, FM_handlerN handler, void* buf, int size) FM_SYMBOL("FM1_send");

/* Documented: takes over everything undelivered, and processes one or more messages: all that were
 * there. What is of 2.x it takes over, too, and leaves for 2.x's FM_extract. Reconstruction of its
 * result: how many messages; -1 with errno where there was none, but a failure to tell of
 * (<fm/fm.h>). */
FM_API int FM1_extract(void);

#ifdef __cplusplus
}
extern "C++" FM_API int FM_extract(void) FM_SYMBOL("FM1_extract");
#elif defined(FM_FM2_H)
#include "both.h"
#else
FM_API int FM_extract(void) FM_SYMBOL("FM1_extract");
#endif

#endif
