// SPDX-License-Identifier: Apache-2.0
// Calls of an instrumented program into libraries that have no hooks, which rmem-cc has the linker
// lead through here (--wrap): those that store into memory, and those that may take long, before
// which the pending store is published. The build reads the linker's list from the table below.

#include "rmem/instrumented/wrapped.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>

using rmem::instrumented::bytes;
using rmem::instrumented::hooks;
using rmem::instrumented::publish;

/// What the linker is asked for by name, so that every program that is linked so has all this.
extern "C" [[gnu::constructor]] void rmem_hooks() {
    rmem_instrumentation_begins(&hooks);
}
extern "C" [[gnu::destructor]] void rmem_hooks_end() {
    publish();
    rmem_instrumentation_ends(&hooks);
}

namespace {

// What has been stored.
template <class T>
void value(const T* to) noexcept {
    bytes(to, sizeof(T));
}
template <class T>
void filled(int result, const T* to) noexcept {
    if (result == 0) value(to);
}
void received(const void* to, ssize_t n, std::size_t room) noexcept {
    if (n > 0) bytes(to, std::min(static_cast<std::size_t>(n), room));
}
void sender(const sockaddr* to, const socklen_t* n, ssize_t result) noexcept {
    if (result >= 0 && to != nullptr) bytes(to, *n);
}
void text(const char* to) noexcept {
    if (to != nullptr) bytes(to, std::strlen(to) + 1);
}
void appended(const char* to, std::size_t n) noexcept {
    bytes(to + std::strlen(to) - n, n + 1);
}
void printed(const char* to, std::size_t room, int n) noexcept {
    if (n >= 0) bytes(to, std::min(room, static_cast<std::size_t>(n) + 1));
}
void vectors(const iovec* to, std::size_t count, ssize_t n) noexcept {
    for (; count-- > 0 && n > 0; n -= static_cast<ssize_t>((to++)->iov_len))
        received(to->iov_base, n, to->iov_len);
}

/// Where a scanf's conversions have stored: the first `converted` of them, and %n.
void scanned(const char* at, va_list& to, int converted) noexcept {
    while ((at = std::strchr(at, '%')) != nullptr) {
        const bool is_skipped = *++at == '*';
        char* length = nullptr;
        const std::size_t width = std::strtoul(at + is_skipped, &length, 10);
        at = length + std::strspn(length, "hlLqjztm");
        const auto longer = static_cast<std::size_t>(at - length);
        const char type = *at;
        if (type == '\0') return;
        if (*++at == '^' && type == '[') ++at;
        if (type == '[') at = std::strchr(*at == '\0' ? at : at + 1, ']');
        if (at == nullptr ||
            (!is_skipped && std::strchr("n%", type) == nullptr && converted-- <= 0))
            return;
        if (is_skipped || type == '%') continue;
        void* const place = va_arg(to, void*);
        if (*length == 'm' || type == 'p')
            bytes(place, sizeof(void*));
        else if (std::strchr("s[", type) != nullptr)
            text(static_cast<const char*>(place));
        else if (type == 'c')
            bytes(place, std::max<std::size_t>(width, 1));
        else if (*length == 'L')
            bytes(place, sizeof(long double));
        else
            bytes(place, longer == 0 ? 4 : *length == 'h' ? 4U >> longer : 8);
    }
}

template <class From>
int scan(int (*real)(From, const char*, va_list), From from, const char* format, va_list& list) {
    va_list again;
    va_copy(again, list);
    const int converted = real(from, format, list);
    scanned(format, again, converted);
    va_end(again);
    return converted;
}

}  // namespace

#define FILLS(n, name, ...) SHAPED(n, name, decltype(name), __VA_ARGS__)
// And its twin of _FORTIFY_SOURCE, most of which take the size of the destination at the end.
#define BOTH(n, name, ...)                         \
    FILLS(n, name, __VA_ARGS__)                    \
    HOOKED(__##name##_chk, Result<decltype(name)>, \
           (PARAMETERS##n(decltype(name)), std::size_t size), (ARGUMENTS##n, size), __VA_ARGS__)
#define VARIES(n, name, parameters, ...) \
    HOOK int __wrap_##name parameters {  \
        publish();                       \
        va_list list;                    \
        va_start(list, format);          \
        const int result = __VA_ARGS__;  \
        va_end(list);                    \
        return result;                   \
    }
#define WAITS(n, name) SHAPED(n, name, decltype(name), )

// clang-format off
// ---- Those that store

BOTH(3, memcpy, bytes(a, c))
BOTH(3, memmove, bytes(a, c))
BOTH(3, mempcpy, bytes(a, c))
BOTH(3, memset, bytes(a, c))
BOTH(3, wmemcpy, bytes(a, c * sizeof(wchar_t)))
BOTH(3, wmemset, bytes(a, c * sizeof(wchar_t)))
BOTH(2, explicit_bzero, bytes(a, b))
FILLS(2, bzero, bytes(a, b))
FILLS(3, bcopy, bytes(b, c))
FILLS(4, memccpy, bytes(a, result == nullptr ? d : static_cast<std::size_t>(
    static_cast<char*>(result) - static_cast<char*>(a))))
FILLS(4, qsort, bytes(a, b * c))
BOTH(2, strcpy, text(a))
BOTH(2, stpcpy, text(a))
BOTH(3, strncpy, bytes(a, c))
BOTH(3, stpncpy, bytes(a, c))
BOTH(2, strcat, appended(a, std::strlen(b)))
BOTH(3, strncat, appended(a, strnlen(b, c)))

using Vsprintf = int(char*, int, std::size_t, const char*, va_list);
using Vsnprintf = int(char*, std::size_t, int, std::size_t, const char*, va_list);
FILLS(3, vsprintf, printed(a, SIZE_MAX, result))
FILLS(4, vsnprintf, printed(a, b, result))
SHAPED(5, __vsprintf_chk, Vsprintf, printed(a, SIZE_MAX, result))
SHAPED(6, __vsnprintf_chk, Vsnprintf, printed(a, b, result))
VARIES(2, sprintf, (char* a, const char* format, ...), __wrap_vsprintf(a, format, list))
VARIES(3, snprintf, (char* a, std::size_t b, const char* format, ...),
       __wrap_vsnprintf(a, b, format, list))
VARIES(4, __sprintf_chk, (char* a, int b, std::size_t c, const char* format, ...),
       __wrap___vsprintf_chk(a, b, c, format, list))
VARIES(5, __snprintf_chk, (char* a, std::size_t b, int c, std::size_t d, const char* format, ...),
       __wrap___vsnprintf_chk(a, b, c, d, format, list))
VARIES(2, sscanf, (const char* a, const char* format, ...), scan(vsscanf, a, format, list))
VARIES(2, fscanf, (FILE* a, const char* format, ...), scan(vfscanf, a, format, list))
VARIES(2, __isoc99_sscanf, (const char* a, const char* format, ...), scan(vsscanf, a, format, list))
VARIES(2, __isoc99_fscanf, (FILE* a, const char* format, ...), scan(vfscanf, a, format, list))

using Recvfrom = ssize_t(int, void*, std::size_t, std::size_t, int, sockaddr*, socklen_t*);
FILLS(3, fgets, text(result))
SHAPED(4, __fgets_chk, char*(char*, std::size_t, int, FILE*), text(result))
FILLS(4, fread, bytes(a, result * b))
SHAPED(5, __fread_chk, std::size_t(void*, std::size_t, std::size_t, std::size_t, FILE*),
       bytes(a, result * c))
BOTH(3, read, received(b, result, c))
BOTH(4, pread, received(b, result, c))
BOTH(4, pread64, received(b, result, c))
FILLS(3, readv, vectors(b, static_cast<std::size_t>(c), result))
FILLS(4, preadv, vectors(b, static_cast<std::size_t>(c), result))
FILLS(4, recv, received(b, result, c))
SHAPED(5, __recv_chk, ssize_t(int, void*, std::size_t, std::size_t, int), received(b, result, c))
FILLS(6, recvfrom, (received(b, result, c), sender(e, f, result)))
SHAPED(7, __recvfrom_chk, Recvfrom, (received(b, result, c), sender(f, g, result)))
FILLS(3, recvmsg, vectors(b->msg_iov, b->msg_iovlen, result))
FILLS(3, getrandom, received(a, result, b))
BOTH(2, getcwd, text(result))
BOTH(3, readlink, received(b, result, c))
BOTH(2, realpath, text(result))
BOTH(2, gethostname, text(result == 0 ? a : nullptr))
FILLS(4, inet_ntop, text(result != nullptr ? c : nullptr))
FILLS(3, inet_pton, bytes(c, result != 1 ? 0 : a == AF_INET ? 4 : 16))
FILLS(2, stat, filled(result, b)) FILLS(2, fstat, filled(result, b))
FILLS(2, lstat, filled(result, b)) FILLS(1, uname, filled(result, a))
FILLS(2, getrusage, filled(result, b)) FILLS(2, sem_getvalue, filled(result, b))

FILLS(2, clock_gettime, filled(result, b)) FILLS(2, clock_getres, filled(result, b))
FILLS(2, gettimeofday, filled(result, a)) FILLS(1, time, value(a)) FILLS(1, times, value(a))
FILLS(2, localtime_r, value(result)) FILLS(2, gmtime_r, value(result))
FILLS(1, mktime, value(a)) FILLS(1, timegm, value(a))
FILLS(2, ctime_r, text(result)) FILLS(2, asctime_r, text(result))
FILLS(4, strftime, bytes(a, result == 0 ? 0 : result + 1))
FILLS(2, modf, value(b)) FILLS(2, modff, value(b)) FILLS(2, modfl, value(b))
FILLS(2, frexp, value(b)) FILLS(2, frexpf, value(b)) FILLS(2, frexpl, value(b))
FILLS(3, remquo, value(c)) FILLS(3, remquof, value(c)) FILLS(1, rand_r, value(a))
FILLS(3, sincos, (value(b), value(c))) FILLS(3, sincosf, (value(b), value(c)))

// ---- Those that may take long

WAITS(1, usleep) WAITS(1, sleep) WAITS(2, nanosleep) WAITS(4, clock_nanosleep)
WAITS(0, sched_yield) WAITS(0, pause) WAITS(3, poll) WAITS(5, select) WAITS(3, write) WAITS(4, send)
FILLS(2, pthread_join, filled(result, b))
WAITS(1, pthread_mutex_lock) WAITS(1, pthread_mutex_unlock)
WAITS(2, pthread_cond_wait) WAITS(3, pthread_cond_timedwait) WAITS(1, pthread_cond_signal)
WAITS(1, pthread_cond_broadcast) WAITS(1, pthread_barrier_wait)
WAITS(1, sem_wait) WAITS(2, sem_timedwait) WAITS(1, sem_post)
