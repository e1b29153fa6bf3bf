// SPDX-License-Identifier: Apache-2.0
// Calls of an instrumented program into libraries that have no hooks, which rmem-cc has the linker
// lead through here (--wrap): those that store into memory, and those that may take long, before
// which the pending store is published. The build reads the list for the linker from the lines
// below that begin with FILLS, CHECKED, SHAPED, VARIES and WAITS.

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
using rmem::instrumented::Checked;
using rmem::instrumented::publish;

namespace {

// What has been stored.
template <class T>
void value(const T* to) noexcept {
    bytes(to, sizeof(T));
}
void received(const void* to, ssize_t n) noexcept {
    if (n > 0) bytes(to, static_cast<std::size_t>(n));
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
    if (room != 0 && n >= 0) bytes(to, std::min(room, static_cast<std::size_t>(n) + 1));
}
void vectors(const iovec* to, int count, ssize_t n) noexcept {
    for (int i = 0; i < count && n > 0; n -= static_cast<ssize_t>(to[i++].iov_len))
        received(to[i].iov_base, std::min(n, static_cast<ssize_t>(to[i].iov_len)));
}

/// Where the conversions of a scanf have stored: the first `converted` that do.
void scanned(const char* at, va_list& to, int converted) noexcept {
    while ((at = std::strchr(at, '%')) != nullptr) {
        const bool is_skipped = *++at == '*';
        at += is_skipped;
        std::size_t width = 0;
        for (; *at >= '0' && *at <= '9'; ++at) width = width * 10 + static_cast<std::size_t>(*at - '0');
        const char* const modifier = at;
        at += std::strspn(at, "hlLqjztm");
        const bool is_long = at != modifier && *modifier != 'h';
        const bool is_twice = at - modifier == 2;
        const char conversion = *at;
        if (conversion == '\0') return;
        ++at;
        if (conversion == '[') {
            at += *at == '^';
            at = std::strchr(at + (*at == ']'), ']');
            if (at == nullptr) return;
        }
        if (conversion == '%' || is_skipped) continue;
        if (conversion != 'n' && converted-- <= 0) return;
        const void* const place = va_arg(to, void*);
        if (std::strchr("aAeEfFgG", conversion) != nullptr) {
            bytes(place, !is_long ? sizeof(float) : *modifier == 'L' ? sizeof(long double) : sizeof(double));
        } else if (std::memchr(modifier, 'm', static_cast<std::size_t>(at - modifier)) != nullptr || conversion == 'p') {
            bytes(place, sizeof(void*));
        } else if (std::strchr("sSc[C", conversion) != nullptr) {
            const bool is_wide = is_long || conversion == 'S' || conversion == 'C';
            if (conversion == 'c' || conversion == 'C')
                bytes(place, std::max<std::size_t>(width, 1) * (is_wide ? sizeof(wchar_t) : 1));
            else if (is_wide)
                bytes(place, (std::wcslen(static_cast<const wchar_t*>(place)) + 1) * sizeof(wchar_t));
            else
                text(static_cast<const char*>(place));
        } else {
            bytes(place, is_long ? sizeof(long) : at - 1 == modifier ? sizeof(int) : is_twice ? 1 : 2);
        }
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
#define CHECKED(n, name, ...) SHAPED(n, __##name##_chk, Checked<decltype(name)>, __VA_ARGS__)
#define VARIES(name, parameters, ...)        \
    HOOK int __wrap_##name parameters {      \
        publish();                           \
        va_list list;                        \
        va_start(list, format);              \
        const int result = __VA_ARGS__;      \
        va_end(list);                        \
        return result;                       \
    }
#define WAITS(n, name) SHAPED(n, name, decltype(name), )

// ---- Those that store
// clang-format off

FILLS(3, memcpy, bytes(a, c))
FILLS(3, memmove, bytes(a, c))
FILLS(3, mempcpy, bytes(a, c))
FILLS(3, memset, bytes(a, c))
FILLS(2, bzero, bytes(a, b))
FILLS(3, bcopy, bytes(b, c))
FILLS(2, explicit_bzero, bytes(a, b))
FILLS(4, memccpy, bytes(a, result == nullptr ? d : static_cast<std::size_t>(static_cast<char*>(result) - static_cast<char*>(a))))
FILLS(2, strcpy, text(a))
FILLS(2, stpcpy, text(a))
FILLS(3, strncpy, bytes(a, c))
FILLS(3, stpncpy, bytes(a, c))
FILLS(2, strcat, appended(a, std::strlen(b)))
FILLS(3, strncat, appended(a, strnlen(b, c)))
FILLS(3, wmemcpy, bytes(a, c * sizeof(wchar_t)))
FILLS(3, wmemset, bytes(a, c * sizeof(wchar_t)))
CHECKED(4, memcpy, bytes(a, c))
CHECKED(4, memmove, bytes(a, c))
CHECKED(4, mempcpy, bytes(a, c))
CHECKED(4, memset, bytes(a, c))
CHECKED(3, explicit_bzero, bytes(a, b))
CHECKED(3, strcpy, text(a))
CHECKED(3, stpcpy, text(a))
CHECKED(4, strncpy, bytes(a, c))
CHECKED(4, stpncpy, bytes(a, c))
CHECKED(3, strcat, appended(a, std::strlen(b)))
CHECKED(4, strncat, appended(a, strnlen(b, c)))
CHECKED(4, wmemcpy, bytes(a, c * sizeof(wchar_t)))
CHECKED(4, wmemset, bytes(a, c * sizeof(wchar_t)))
FILLS(4, qsort, bytes(a, b * c))

FILLS(3, vsprintf, printed(a, SIZE_MAX, result))
FILLS(4, vsnprintf, printed(a, b, result))
SHAPED(5, __vsprintf_chk, int(char*, int, std::size_t, const char*, va_list), printed(a, SIZE_MAX, result))
SHAPED(6, __vsnprintf_chk, int(char*, std::size_t, int, std::size_t, const char*, va_list), printed(a, b, result))
VARIES(sprintf, (char* a, const char* format, ...), __wrap_vsprintf(a, format, list))
VARIES(snprintf, (char* a, std::size_t n, const char* format, ...), __wrap_vsnprintf(a, n, format, list))
VARIES(__sprintf_chk, (char* a, int b, std::size_t c, const char* format, ...), __wrap___vsprintf_chk(a, b, c, format, list))
VARIES(__snprintf_chk, (char* a, std::size_t n, int b, std::size_t c, const char* format, ...), __wrap___vsnprintf_chk(a, n, b, c, format, list))
VARIES(sscanf, (const char* a, const char* format, ...), scan(vsscanf, a, format, list))
VARIES(fscanf, (FILE* a, const char* format, ...), scan(vfscanf, a, format, list))
VARIES(__isoc99_sscanf, (const char* a, const char* format, ...), scan(vsscanf, a, format, list))
VARIES(__isoc99_fscanf, (FILE* a, const char* format, ...), scan(vfscanf, a, format, list))

FILLS(3, fgets, text(result))
SHAPED(4, __fgets_chk, char*(char*, std::size_t, int, FILE*), text(result))
FILLS(4, fread, bytes(a, result * b))
SHAPED(5, __fread_chk, std::size_t(void*, std::size_t, std::size_t, std::size_t, FILE*), bytes(a, result * c))
FILLS(3, read, received(b, result))
FILLS(4, pread, received(b, result))
FILLS(4, pread64, received(b, result))
FILLS(3, readv, vectors(b, c, result))
FILLS(4, preadv, vectors(b, c, result))
FILLS(4, recv, received(b, result))
FILLS(6, recvfrom, (received(b, result), sender(e, f, result)))
FILLS(3, recvmsg, vectors(b->msg_iov, static_cast<int>(b->msg_iovlen), result))
CHECKED(4, read, received(b, result))
SHAPED(5, __pread_chk, ssize_t(int, void*, std::size_t, off_t, std::size_t), received(b, result))
SHAPED(5, __pread64_chk, ssize_t(int, void*, std::size_t, off_t, std::size_t), received(b, result))
SHAPED(5, __recv_chk, ssize_t(int, void*, std::size_t, std::size_t, int), received(b, result))
SHAPED(7, __recvfrom_chk, ssize_t(int, void*, std::size_t, std::size_t, int, sockaddr*, socklen_t*), (received(b, result), sender(f, g, result)))
FILLS(3, getrandom, received(a, result))
FILLS(2, getcwd, text(result))
CHECKED(3, getcwd, text(result))
FILLS(3, readlink, received(b, result))
CHECKED(4, readlink, received(b, result))
FILLS(2, realpath, text(result))
CHECKED(3, realpath, text(result))
FILLS(2, gethostname, text(result == 0 ? a : nullptr))
CHECKED(3, gethostname, text(result == 0 ? a : nullptr))
FILLS(4, inet_ntop, text(result))
FILLS(3, inet_pton, bytes(c, result != 1 ? 0 : a == AF_INET ? 4 : 16))

FILLS(2, clock_gettime, value(b))
FILLS(2, clock_getres, value(b))
FILLS(2, gettimeofday, value(a))
FILLS(1, time, value(a))
FILLS(2, localtime_r, value(result))
FILLS(2, gmtime_r, value(result))
FILLS(1, mktime, value(a))
FILLS(1, timegm, value(a))
FILLS(2, ctime_r, text(result))
FILLS(2, asctime_r, text(result))
FILLS(4, strftime, bytes(a, result == 0 ? 0 : result + 1))
FILLS(1, times, value(a))
FILLS(2, getrusage, value(b))
FILLS(1, uname, value(a))
FILLS(2, stat, value(b))
FILLS(2, fstat, value(b))
FILLS(2, lstat, value(b))
FILLS(2, sem_getvalue, value(b))
FILLS(1, rand_r, value(a))
FILLS(2, modf, value(b))
FILLS(2, modff, value(b))
FILLS(2, modfl, value(b))
FILLS(2, frexp, value(b))
FILLS(2, frexpf, value(b))
FILLS(2, frexpl, value(b))
FILLS(3, remquo, value(c))
FILLS(3, remquof, value(c))
FILLS(3, sincos, (value(b), value(c)))
FILLS(3, sincosf, (value(b), value(c)))

// ---- Those that may take long

WAITS(1, usleep)
WAITS(1, sleep)
WAITS(2, nanosleep)
WAITS(4, clock_nanosleep)
WAITS(0, sched_yield)
WAITS(0, pause)
WAITS(3, poll)
WAITS(5, select)
WAITS(3, write)
WAITS(4, send)
FILLS(2, pthread_join, value(b))
WAITS(1, pthread_mutex_lock)
WAITS(1, pthread_mutex_unlock)
WAITS(2, pthread_cond_wait)
WAITS(3, pthread_cond_timedwait)
WAITS(1, pthread_cond_signal)
WAITS(1, pthread_cond_broadcast)
WAITS(1, pthread_barrier_wait)
WAITS(1, sem_wait)
WAITS(2, sem_timedwait)
WAITS(1, sem_post)
