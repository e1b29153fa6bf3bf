/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MUNET_MUNET_H
#define MUNET_MUNET_H

/*
 * MU-Net: messages between processes of different users, which cannot read, change or stall each
 * other's.
 *
 * A process creates endpoints. Each lies in memory that only its process and the node's daemon
 * (`rmem node --munet`, in the place of the paper's driver and network card) have mapped. To send,
 * the process fills a descriptor in that memory; the daemon finds it, checks it and moves the
 * message into the receive buffer of the destination, at this node or another. No call enters the
 * kernel, but to create, to destroy and to sleep.
 *
 *     mu_endpoint_t* ep;
 *     if (mu_create_endpoint(&ep, 65536, 65536) < 0) { puts(mu_last_error()); return 1; }
 *     mu_send(ep, (mu_addr_t){0, 7}, "hello", 6);
 *     while ((n = mu_recv(ep, text, sizeof text, &from)) == -EAGAIN) mu_wait(ep, -1);
 *
 * Order         Messages from one endpoint to another arrive in the order sent, each once, whatever
 *               their sizes and by whichever of the two sends. Nothing is promised between senders.
 * Flow control  A receive buffer is divided among the senders it admits
 *               (`rmem node --munet-senders`). A sender that has used its share up waits in mu_send
 *               until the receiver has received: two programs that only send to each other can wait
 *               for each other; mu_set_timeout is the tool for those. A message takes three
 *               quarters of a share at most. In a share it takes 16 bytes more, rounded up to lines
 *               of 64 bytes; one that mu_send has cut, 192 for each 128. So what mu_send sends and
 *               is longer than half a share may wait until its receiver receives, though nothing
 *               else is on its way; by mu_send_DMA it has room as a whole.
 * Protection    By virtual memory, between processes. Endpoints of one process share its fate. A
 *               destination is nobody's secret: a user who may connect to the daemon may send to
 *               any endpoint that has a place for senders left; a user takes half of them at most,
 *               except for those of his own endpoints.
 * Death         The endpoint of a process that ends, however it ends, is destroyed. What was sent
 *               to it is lost; its senders are told by -ECONNRESET, once, and may then reach the
 *               next one that has its number. When the daemon ends, all calls say -ENETDOWN:
 *               destroy the endpoint and create another.
 * Threads       One thread at a time per endpoint.
 * Fork          An endpoint belongs to the process that created it; its memory is not there in a
 *               child, where each call with it is -EINVAL.
 * Results       0 or a length on success, a negative errno otherwise; mu_last_error() gives the
 *               sentence.
 * Source        S. Nagar et al., "Implementing Protected Multi-User Communication for Myrinet"
 *               (CANPC 1998). It prints no prototypes. From the paper: the operations and which
 *               arguments they take, 128 bytes within a descriptor, the buffers' sizes given at
 *               creation, numbers of endpoints of one byte, credits. All names of functions but
 *               send and send_DMA, types and results are a reconstruction; additions are marked.
 */

#include "rmem/version.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MU_API __attribute__((visibility("default")))
#else
#define MU_API
#endif

/* Bytes that travel inside a descriptor (documented). */
#define MU_INLINE_BYTES 128

typedef struct mu_endpoint mu_endpoint_t;

/* Where messages go: an endpoint of a node. */
typedef struct {
    int node;
    unsigned char ep; /* one byte: documented */
} mu_addr_t;

/* Creates an endpoint at the daemon that RMEM_MUNET names, a socket; without, that of the ring and
 * node that the environment names (munet(7)). `send_buf` and `recv_buf` are the bytes of the host
 * buffers, which are rounded up to lines of 64 bytes and cannot be changed later; `send_buf` may be
 * 0 where mu_send_DMA is not used. -ENOENT, -ECONNREFUSED: no daemon; -EACCES: not for this user;
 * -EDQUOT: over this user's limit of memory or endpoints; -ENOBUFS: the node has no endpoint left;
 * -EINVAL: sizes out of range; -EPROTO: another version. */
MU_API int mu_create_endpoint(mu_endpoint_t** ep, size_t send_buf, size_t recv_buf);

/* Destroys it. What it has sent is still taken. A null pointer is allowed. */
MU_API int mu_destroy_endpoint(mu_endpoint_t* ep);

/* Sends `len` bytes; returns when `msg` may be used again. Up to MU_INLINE_BYTES are copied into
 * the descriptor; longer messages are cut into such pieces. The first message to a destination asks
 * for a place there. -ECONNREFUSED: there is no such endpoint; -EUSERS: it has no place left for
 * this sender; -ENETUNREACH: no such node; -ECONNRESET: it was destroyed since; -EMSGSIZE: longer
 * than three quarters of the share, or than 2^31-1; -ENOBUFS: 256 destinations are in use;
 * -ETIMEDOUT: as mu_set_timeout says, nothing of it will arrive. */
MU_API int mu_send(mu_endpoint_t* ep, mu_addr_t dst, const void* msg, size_t len);

/* The same, but the message is copied into the host send buffer, and the daemon moves it while the
 * program goes on. Up to MU_INLINE_BYTES this is mu_send. -EMSGSIZE also when it is longer than the
 * host send buffer. */
MU_API int mu_send_DMA(mu_endpoint_t* ep, mu_addr_t dst, const void* msg, size_t len);

/* Copies the next message into `buf`, of `maxlen` bytes, and returns its length; 0 is an empty
 * message, -EAGAIN none. *src, if not null, tells the sender. -EMSGSIZE: longer than maxlen; it
 * stays, and mu_probe tells its length. */
MU_API int mu_recv(mu_endpoint_t* ep, void* buf, size_t maxlen, mu_addr_t* src);

/* ---- Additions */

/* Waits until a message is there, at most `timeout_ns` nanoseconds; -1: forever. 0 or -ETIMEDOUT.
 * Spins while there are processors to spare, then yields, then sleeps. */
MU_API int mu_wait(mu_endpoint_t* ep, int64_t timeout_ns);

/* The length (and sender) of what the next mu_recv returns, or -EAGAIN. */
MU_API int mu_probe(mu_endpoint_t* ep, mu_addr_t* src);

/* The endpoint's own address, to be given to those that send to it. */
MU_API int mu_address(const mu_endpoint_t* ep, mu_addr_t* own);

/* How long a send may wait for room: -1 forever, which is the default; 0 not at all. For an answer
 * of a node where nothing was sent to before it waits at least 10 s. */
MU_API int mu_set_timeout(mu_endpoint_t* ep, int64_t timeout_ns);

/* The longest message that `dst` takes of this endpoint; asks for a place there, as mu_send
 * does. */
MU_API int64_t mu_max_message(mu_endpoint_t* ep, mu_addr_t dst);

/* The sentence for this thread's last failed call: the object, what was found, what to do. */
MU_API const char* mu_last_error(void);

/* Of this header, and of the library that the program runs with (rmem/version.h). */
#define MU_VERSION RMEM_VERSION
MU_API int mu_version(void);

#ifdef __cplusplus
}
#endif

#endif /* MUNET_MUNET_H */
