// SPDX-License-Identifier: Apache-2.0
// The driver's ioctl(2) on scr_csr_fd, by which programs for Linux wait for an interrupt, or have a
// signal sent. All else that they ask of ioctl goes to the system.

#include "cards/scramnet_plus/scrplus.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>

namespace cards::scramnet_plus {

namespace {

constexpr int kLookMs = 100;  // whether the card is still mapped

int fail(int error) noexcept {
    errno = error;
    return -1;
}

/// Until one is in the FIFO.
int wait_for_interrupt(unsigned* count) noexcept {
    for (;;) {
        if (scr_registers_mapped == 0 && scr_memory_mapped == 0) return fail(ENODEV);
        if ((scr_csr_read(SCR_CSR5) & CSR5_IFE) != 0) break;
        pollfd waits{scr_csr_fd, POLLIN, 0};
        if (::poll(&waits, 1, kLookMs) < 0) return -1;
    }
    if (count != nullptr) *count = 1;
    return 0;
}

/// SIGUSR1 with each interrupt that finds none waiting, as the driver sends it.
int send_signals(bool on) noexcept {
    const int fd = scr_csr_fd;
    struct stat found {};
    // Of what tells of datagrams, too, the system sends none (link udp, without `rmem node`).
    if (::fstat(fd, &found) != 0 || !S_ISFIFO(found.st_mode)) return fail(EOPNOTSUPP);
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETOWN, ::getpid()) != 0 || ::fcntl(fd, F_SETSIG, SIGUSR1) != 0)
        return -1;
    return ::fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC);
}

}  // namespace

}  // namespace cards::scramnet_plus

extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request,
                                                            ...) noexcept {
    using Call = int (*)(int, unsigned long, void*);
    std::va_list arguments;
    va_start(arguments, request);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    if (fd >= 0 && fd == scr_csr_fd) {
        switch (request) {
            case WAIT_INTERRUPT:
                return cards::scramnet_plus::wait_for_interrupt(static_cast<unsigned*>(argument));
            case INTSIG:
                return cards::scramnet_plus::send_signals(
                    reinterpret_cast<std::uintptr_t>(argument) == SET_SIG);
            case FLUSHSIG: return 0;
            default: break;
        }
    }
    static const auto next = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "ioctl"));
    return next(fd, request, argument);
}
