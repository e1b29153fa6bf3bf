/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GAMMA_LIBGAMMA_H
#define GAMMA_LIBGAMMA_H

/*
 * GAMMA: active ports, on reflective memory.
 *
 * A parallel program is a group of processes, its nodes, under one parallel PID. Each process has
 * ports 0 to 254. It binds a port to where its messages go (parallel PID, node, port), to a buffer
 * into which what comes is put, and to a handler that runs when a whole message has come, also
 * while the program computes.
 *
 *     static void come(void) { gamma_signal(5); }
 *
 *     gamma_init(2, argc, argv);
 *     gamma_set_active_port(5, 1 - gamma_my_node(), gamma_my_par_pid(), 5, come, 5, GO_BACK, in,
 *         sizeof in);
 *     gamma_sync();
 *     gamma_send(5, out, sizeof out);
 *     gamma_wait(5, 1);                          (the paper's synchronous receive)
 *
 * Order         Messages of one process to one port arrive in the order sent. A message that is
 *               longer than a frame (1500 bytes) is cut; it is delivered whole or not at all.
 * Delivery      gamma_send is best effort, as GAMMA's is: where the receiver does not take in for
 *               longer than 100 ms (RMEM_GAMMA=patience=…) a frame is lost by overrun. The
 *               receiver's error handler is told of each loss (GAMMA_ELOST), from the numbers of
 *               the frames. The _flowctl calls wait instead, and lose nothing.
 * Buffers       A message is put where its port's buffer is. The next one overlaps it, unless the
 *               handler has bound a fresh buffer (gamma_post_recv); none comes into it while the
 *               handler runs. One longer than the buffer is not delivered: error handler,
 *               GAMMA_EOVERLONG. Other senders to a port wait while a longer message of one is
 *               coming in.
 * Handlers      are short. They run one at a time, in whatever call of the library takes messages
 *               in (gamma_wait, gamma_test, gamma_sync, gamma_exit, and sends that wait for room),
 *               or in the progress thread, also while the program computes. They may call all
 *               functions but gamma_init, gamma_exit and gamma_sync, which are GAMMA_EINVAL there.
 *               While one waits for room to send, or for a semaphore, handlers of other ports may
 *               run within it.
 * Errors        Every function returns a negative GAMMA_E… code on error, except gamma_time and
 *               gamma_time_diff; the sentence is gamma_last_error(). A port's error handler runs
 *               with gamma_active_port and gamma_errno set; a port without one tells the call that
 *               waits on its semaphore, once: gamma_wait returns the code.
 * Dead peers    Sending to a dead process is GAMMA_EPEER, and calls the port's error handler; so is
 *               waiting on the semaphore of a port that is bound to one, until it is bound again.
 *               Nothing hangs.
 * Threads       The progress thread is on by default (RMEM_GAMMA=progress=off: handlers run in
 *               calls alone). With it, several threads of the program may call; without, one.
 * Fork          A fork()ed child is no process of GAMMA: each call there is GAMMA_EINVAL, until it
 *               calls gamma_init itself.
 * Start         No configuration file: rank and number come from the environment (rmem run, Hydra,
 *               Slurm; rmem(7)). gamma_init waits for all ranks of the ring. Those that name a PID
 *               (RMEM_GAMMA=pid=…, 0 to 255) are that group; the others form consecutive groups of
 *               as many ranks as each asks for.
 * Source        G. Ciaccio, "Optimal Communication Performance on Fast Ethernet with GAMMA", and
 *               for names and signatures the later library's list of functions. Marked below:
 *               [paper], [library] for a documented name with documented arguments, [name] for a
 *               documented name whose arguments are a reconstruction, [addition].
 *
 * Of the later library's list these do not exist here: gamma_isend, gamma_wsend, gamma_tsend and
 * their variants, since a send has copied its buffer when it returns, so each would be its
 * gamma_send; gamma_send_2p_flowctl stands for the rest of "2p".
 */

#include "rmem/version.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GAMMA_API __attribute__((visibility("default")))
#else
#define GAMMA_API
#endif

/* [paper] As destination node: all of the group but oneself; its value is a reconstruction. */
#define BROADCAST 0xffff
/* [library] Kind of buffer: each message begins at its start; its value is a reconstruction. */
#define GO_BACK 0

enum {
    GAMMA_EAGAIN = -1,     /* would wait where it must not: in a handler or in gamma_atomic */
    GAMMA_EINVAL = -2,     /* an invalid argument or setting; or not between init and exit */
    GAMMA_ENODE = -3,      /* no such node, or no such group */
    GAMMA_ESIZE = -4,      /* larger than can be sent */
    GAMMA_EPEER = -5,      /* a process that this needs is dead or has left */
    GAMMA_ETIMEDOUT = -6,  /* the other ranks did not call gamma_init in time */
    GAMMA_ENOMEM = -7,     /* no memory, or none that may be locked */
    GAMMA_ESYS = -8,       /* the system refused something */
    GAMMA_ECORRUPT = -9,   /* shared memory holds what no process of this library writes */
    GAMMA_EVERSION = -10,  /* another version of this library is on the ring */
    GAMMA_EBUSY = -11,     /* another live process has claimed this rank */
    GAMMA_EPORT = -12,     /* no such port, or it is not bound */
    GAMMA_ELOST = -13,     /* frames were lost */
    GAMMA_EOVERLONG = -14, /* a message was longer than the port's buffer */
    GAMMA_ESIGNAL = -15    /* somebody called gamma_sigerr */
};

/* ---- Life cycle */

/* [library] Joins the ring and makes this process one of a group of num_nodes. Waits until all
 * ranks have called it, except for MU-Net's daemons. */
GAMMA_API int gamma_init(unsigned char num_nodes, int argc, char** argv);
/* [addition] From now on the progress thread runs handlers, or (0) only calls do:
 * RMEM_GAMMA=progress=…, by the program. */
GAMMA_API int gamma_set_progress(int on);
/* [name] Leaves; what was sent stays readable for its receivers. No other call may be under way. */
GAMMA_API int gamma_exit(void);
/* [name] Ends the process at once, by abort(3); the others see a dead peer. */
GAMMA_API void gamma_abort(void);

/* [library] */
GAMMA_API int gamma_my_par_pid(void);
GAMMA_API int gamma_my_node(void);
GAMMA_API int gamma_how_many_nodes(void);

/* ---- Ports */

/* [library] Binds a port; `handler` runs at each arrival, and signals what it likes. `semaphore` is
 * where the port's errors are told that no error handler takes. A buffer of 0 bytes takes messages
 * without bytes only. */
GAMMA_API int gamma_set_active_port(unsigned short port, unsigned short dest_node,
                                    unsigned char dest_par_pid, unsigned short dest_port,
                                    void (*handler)(void), unsigned short semaphore,
                                    unsigned char buffer_kind, void* buffer, unsigned long size);
/* [name] The same without a handler: each arrival signals the semaphore. */
GAMMA_API int gamma_set_passive_port(unsigned short port, unsigned short dest_node,
                                     unsigned char dest_par_pid, unsigned short dest_port,
                                     unsigned short semaphore, unsigned char buffer_kind,
                                     void* buffer, unsigned long size);
/* [paper: what is bound; the name and the order of arguments are a reconstruction] Semaphore: that
 * of the port's number. Without a receiver handler the port is passive. */
GAMMA_API int gamma_setport(unsigned char port, unsigned char dest_par_pid, int dest_node,
                            unsigned char dest_port, void (*rcv_handler)(void),
                            void (*err_handler)(void), void* buffer, int size);
/* [addition] The error handler of a bound port (null: none), where it is bound by the later
 * library's calls. */
GAMMA_API int gamma_set_error_handler(unsigned short port, void (*handler)(void));
/* [library] Binds a fresh buffer. A message that is coming in goes on there; if it does not fit, it
 * is overlong. */
GAMMA_API int gamma_post_recv(unsigned short port, void* buffer, unsigned long size);

/* ---- Messages */

/* [library] Sends through a bound port; returns 0 when `buf` may be used again, also where frames
 * were lost by overrun, of which only the receiver is told. GAMMA_ESIZE: 4 GiB or more. During a
 * longer message to the same port of the same process, a handler's is refused: GAMMA_EAGAIN. */
GAMMA_API int gamma_send(unsigned short port, void* buf, unsigned long len);
/* [library] The same, waiting for the receiver while it is alive. Where messages cannot be taken
 * in meanwhile (in a handler whose port's next message is waiting, in gamma_atomic) at most two
 * seconds: GAMMA_EAGAIN, or, when a part is on its way, GAMMA_ELOST. */
GAMMA_API int gamma_send_flowctl(unsigned short port, void* buf, unsigned long len);
/* [name] Two pieces, which arrive as one message. */
GAMMA_API int gamma_send_2p(unsigned short port, void* b1, unsigned long n1, void* b2,
                            unsigned long n2);
GAMMA_API int gamma_send_2p_flowctl(unsigned short port, void* b1, unsigned long n1, void* b2,
                                    unsigned long n2);

/* [addition] For layers whose calls must not wait (MPI's device): as gamma_send_2p_flowctl, but the
 * message leaves at once or not at all (GAMMA_EAGAIN, of which gamma_last_error says nothing); so
 * it is no longer than a frame, gamma_frame_bytes(). */
GAMMA_API int gamma_try_send_2p(unsigned short port, void* b1, unsigned long n1, void* b2,
                                unsigned long n2);
GAMMA_API int gamma_frame_bytes(void);

/* ---- Semaphores: 0 to 255, one for each port */

/* [paper] Waits for n signals, and takes them. Takes messages in meanwhile, in slices of 50 us. */
GAMMA_API int gamma_wait(unsigned short sem, int n);
/* [name] 1 when there are n signals, which it takes; 0 when not. Takes in what has come. */
GAMMA_API int gamma_test(unsigned short sem, int n);
/* [paper] */
GAMMA_API int gamma_signal(unsigned short sem);
/* [name] The call that waits on the semaphore, or the next one, returns GAMMA_ESIGNAL. */
GAMMA_API int gamma_sigerr(unsigned short sem);

/* ---- Together */

/* [library] The barrier of the group, by port 255. */
GAMMA_API int gamma_sync(void);
/* [name] Runs fn while no handler runs. Within it, gamma_wait does not wait: GAMMA_EAGAIN. */
GAMMA_API int gamma_atomic(void (*fn)(void));

/* ---- Memory, time */

/* [name] As mlock(2): a real GAMMA needs buffers locked, here it only keeps them from being
 * swapped. */
GAMMA_API int gamma_mlock(void* addr, unsigned long len);
GAMMA_API int gamma_munlock(void* addr, unsigned long len);
GAMMA_API int gamma_munlockall(void);

/* [name] A point in time, and the microseconds from one to another. */
typedef struct {
    long long ns;
} gamma_time_t;
GAMMA_API gamma_time_t gamma_time(void);
GAMMA_API double gamma_time_diff(gamma_time_t from, gamma_time_t to);

/* ---- What a handler reads */

extern GAMMA_API unsigned short
    gamma_active_port;              /* [library] the port whose handler runs, or ran last       */
extern GAMMA_API long gamma_msglen; /* [library] the length of the message that came            */
extern GAMMA_API int gamma_errno;   /* [library, older] why an error handler runs: a GAMMA_E…   */

/* ---- Errors, counters */

/* [addition] A code's meaning; the sentence of this thread's last failed call. */
GAMMA_API const char* gamma_strerror(int code);
GAMMA_API const char* gamma_last_error(void);
/* [addition] What a process has counted, by the name of the counter (gamma(7)), also while it is
 * stuck: this one, or one that shares its memory on this host (on link udp one of the same node of
 * the ring, in the simulator none). */
GAMMA_API long long gamma_counter(unsigned char par_pid, unsigned short node, const char* name);

/* [addition] Of this header, and of the library that the program runs with (rmem/version.h). */
#define GAMMA_VERSION RMEM_VERSION
GAMMA_API int gamma_version(void);

#ifdef __cplusplus
}
#endif

#endif /* GAMMA_LIBGAMMA_H */
