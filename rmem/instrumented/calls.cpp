// SPDX-License-Identifier: Apache-2.0
// Calls of an instrumented program into libraries that have no hooks, which rmem-cc has the linker
// lead through here (--wrap): those that store into memory, and those that may take long, before
// which the pending store is published. rmem/instrumented/wrapped.txt is the list for the linker.

#include "rmem/instrumented/pending.hpp"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

using rmem::instrumented::has_stored;
using rmem::instrumented::publish;

// ---- Those that store

/// A function that fills `bytes` bytes from `to` on.
#define FILLS(type, name, parameters, arguments, to, bytes)                          \
    extern "C" type __real_##name parameters;                                        \
    extern "C" [[gnu::visibility("default")]] type __wrap_##name parameters {        \
        publish();                                                                   \
        type const result = __real_##name arguments;                                 \
        if (const std::size_t stored = (bytes); stored != 0) has_stored(to, stored); \
        return result;                                                               \
    }

FILLS(void*, memcpy, (void* to, const void* from, std::size_t n), (to, from, n), to, n)
FILLS(void*, memmove, (void* to, const void* from, std::size_t n), (to, from, n), to, n)
FILLS(void*, memset, (void* to, int value, std::size_t n), (to, value, n), to, n)
FILLS(char*, strcpy, (char* to, const char* from), (to, from), to, std::strlen(to) + 1)
FILLS(char*, strncpy, (char* to, const char* from, std::size_t n), (to, from, n), to, n)
FILLS(char*, strcat, (char* to, const char* from), (to, from), to, std::strlen(to) + 1)

namespace {
std::size_t received(ssize_t result) noexcept {
    return result > 0 ? static_cast<std::size_t>(result) : 0;
}
}  // namespace

FILLS(ssize_t, read, (int fd, void* to, std::size_t n), (fd, to, n), to, received(result))
FILLS(ssize_t, pread, (int fd, void* to, std::size_t n, off_t at), (fd, to, n, at), to,
      received(result))
FILLS(ssize_t, recv, (int fd, void* to, std::size_t n, int flags), (fd, to, n, flags), to,
      received(result))
FILLS(ssize_t, recvfrom,
      (int fd, void* to, std::size_t n, int flags, sockaddr* from, socklen_t* length),
      (fd, to, n, flags, from, length), to, received(result))
FILLS(std::size_t, fread, (void* to, std::size_t size, std::size_t count, FILE* file),
      (to, size, count, file), to, result* size)

// ---- Those that may take long

#define WAITS(type, name, parameters, arguments)                              \
    extern "C" type __real_##name parameters;                                 \
    extern "C" [[gnu::visibility("default")]] type __wrap_##name parameters { \
        publish();                                                            \
        return __real_##name arguments;                                       \
    }

WAITS(int, usleep, (useconds_t us), (us))
WAITS(unsigned, sleep, (unsigned s), (s))
WAITS(int, nanosleep, (const timespec* time, timespec* left), (time, left))
WAITS(int, clock_nanosleep, (clockid_t clock, int flags, const timespec* time, timespec* left),
      (clock, flags, time, left))
WAITS(int, sched_yield, (), ())
WAITS(int, pause, (), ())
WAITS(int, poll, (pollfd * fds, nfds_t n, int ms), (fds, n, ms))
WAITS(int, select, (int n, fd_set* in, fd_set* out, fd_set* other, timeval* time),
      (n, in, out, other, time))
WAITS(ssize_t, write, (int fd, const void* from, std::size_t n), (fd, from, n))
WAITS(ssize_t, send, (int fd, const void* from, std::size_t n, int flags), (fd, from, n, flags))
WAITS(int, pthread_join, (pthread_t thread, void** result), (thread, result))
WAITS(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
WAITS(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
WAITS(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex),
      (condition, mutex))
WAITS(int, pthread_cond_timedwait,
      (pthread_cond_t * condition, pthread_mutex_t* mutex, const timespec* time),
      (condition, mutex, time))
WAITS(int, pthread_cond_signal, (pthread_cond_t * condition), (condition))
WAITS(int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition))
WAITS(int, pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier))
WAITS(int, sem_wait, (sem_t * semaphore), (semaphore))
WAITS(int, sem_timedwait, (sem_t * semaphore, const timespec* time), (semaphore, time))
WAITS(int, sem_post, (sem_t * semaphore), (semaphore))
