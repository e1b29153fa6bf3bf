// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/helper_thread.hpp"

#include "rmem/base/host_limits.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <system_error>
#include <utility>

namespace rmem {

namespace {

/// Keeps the program's signals away from a thread that starts meanwhile: it inherits the mask.
///
/// Signals that a thread's own fault raises stay open: blocked, they would end the process without
/// the program's (or a sanitizer's) handler, which tells where it was.
class SignalsBlocked {
public:
    SignalsBlocked() noexcept {
        sigset_t most;
        sigfillset(&most);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
            sigdelset(&most, fault);
        pthread_sigmask(SIG_BLOCK, &most, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace

std::thread HelperThread::start(const char* name, std::function<void()> work) {
    const SignalsBlocked blocked;
    try {
        return std::thread([name, work = std::move(work)] {
            ::pthread_setname_np(::pthread_self(), name);
            work();
        });
    } catch (const std::system_error& error) {
        throw std::system_error(error.code(), limit_of_threads());
    }
}

bool HelperThread::ask_for_real_time() noexcept {
    sched_param lowest{};
    lowest.sched_priority = ::sched_get_priority_min(SCHED_FIFO);
    return ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &lowest) == 0;
}

void HelperThread::leave_real_time() noexcept {
    const sched_param none{};
    ::pthread_setschedparam(::pthread_self(), SCHED_OTHER, &none);
}

}  // namespace rmem
