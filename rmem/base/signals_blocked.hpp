// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Keeps the program's signals away from a helper thread: it inherits the mask of the thread that
/// starts it.
///
///     const SignalsBlocked blocked;
///     thread_ = std::thread(...);
///
/// Signals that a thread's own fault raises stay open: blocked, they would end the process without
/// the program's (or a sanitizer's) handler, which tells where it was.

#include <signal.h>

#include <initializer_list>

namespace rmem {

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

}  // namespace rmem
