// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/signal_chain.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace rmem::stores {

namespace {

struct Looked {
    int signal = 0;
    std::array<std::atomic<FirstHandler>, 2> first{};  ///< in turn; null: none
    struct sigaction program {};                       ///< what follows
};

constinit std::array<Looked, 1> looked{Looked{SIGSEGV, {}, {}}};

/// The signal that the program's handler has got last on this thread. If it calls the handler that
/// it has found in its place, that may be this library's, and nobody follows then. (It is the same
/// context, deeper on the stack: the handler may have jumped away from the last signal.)
struct Passed {
    const void* context = nullptr;
    const void* frame = nullptr;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Passed passed{};

[[noreturn]] void fail(int signal) {
    throw Error(Errc::system, fmt::format("handling signal {}: {}", signal, std::strerror(errno)));
}

std::mutex& installing() {
    static std::mutex mutex;
    return mutex;
}

Looked* find(int signal) noexcept {
    for (Looked& one : looked) {
        if (one.signal == signal) return &one;
    }
    return nullptr;
}

/// The C library's own, also where another library stands before it.
int system_sigaction(int signal, const struct sigaction* action, struct sigaction* before) {
    using Function = int (*)(int, const struct sigaction*, struct sigaction*);
    static const auto function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "sigaction"));
    return function != nullptr ? function(signal, action, before)
                               : ::sigaction(signal, action, before);
}

/// Lets the program have the signal.
void pass_on(Looked& one, siginfo_t* info, ucontext_t* context, bool is_nested) noexcept {
    struct sigaction action = one.program;
    const bool has_handler = (action.sa_flags & SA_SIGINFO) != 0 ||
                             (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
    if (!has_handler || is_nested) {
        // The instruction raises the signal again, and nobody is there then. (One that was sent is
        // ignored, or sent again.)
        const bool was_sent = info->si_code <= 0;
        if (was_sent && action.sa_handler == SIG_IGN) return;
        struct sigaction none {};
        none.sa_handler = SIG_DFL;
        system_sigaction(one.signal, &none, nullptr);
        if (was_sent) ::raise(one.signal);
        return;
    }
    if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) one.program.sa_handler = SIG_DFL;
    sigset_t mask = context->uc_sigmask;
    for (int s = 1; s < NSIG; ++s) {
        if (sigismember(&action.sa_mask, s) == 1) sigaddset(&mask, s);
    }
    if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, one.signal);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(one.signal, info, context);
    } else {
        action.sa_handler(one.signal);
    }
}

void on_signal(int signal, siginfo_t* info, void* raw_context) {
    const int error = errno;
    auto* const context = static_cast<ucontext_t*>(raw_context);
    Looked* const one = find(signal);
    bool is_ours = false;
    for (const auto& first : one->first) {
        // (1) - this acquire-load synchronizes-with the release-store (2)
        const FirstHandler handler = first.load(std::memory_order_acquire);
        is_ours = is_ours || (handler != nullptr && handler(*info, *context));
    }
    if (!is_ours) {
        const void* const frame = __builtin_frame_address(0);
        const bool is_nested = passed.context == context && frame < passed.frame;
        passed = {context, frame};
        pass_on(*one, info, context, is_nested);
    }
    errno = error;
}

}  // namespace

void look_first(int signal, FirstHandler handler) {
    const std::lock_guard lock(installing());
    Looked* const one = find(signal);
    struct sigaction now {};
    if (system_sigaction(signal, nullptr, &now) != 0) fail(signal);
    // The program may have set an action of its own since.
    if (now.sa_sigaction != on_signal) {
        struct sigaction action {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        sigfillset(&action.sa_mask);
        one->program = now;
        if (system_sigaction(signal, &action, nullptr) != 0) fail(signal);
    }
    for (auto& first : one->first) {
        FirstHandler none = nullptr;
        // (2) - this release-store synchronizes-with the acquire-load (1); relaxed is enough where
        // it fails: setters exclude each other
        if (first.compare_exchange_strong(none, handler, std::memory_order_release,
                                          std::memory_order_relaxed) ||
            none == handler)
            return;
    }
}

void stay_first() {
    for (const Looked& one : looked) {
        // relaxed is enough: it is only told once more
        const FirstHandler handler = one.first[0].load(std::memory_order_relaxed);
        if (handler != nullptr) look_first(one.signal, handler);
    }
}

bool is_asked_to_end() noexcept {
    sigset_t pending;
    if (sigpending(&pending) != 0) return false;
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
           sigismember(&pending, SIGHUP) == 1 || sigismember(&pending, SIGQUIT) == 1;
}

}  // namespace rmem::stores
