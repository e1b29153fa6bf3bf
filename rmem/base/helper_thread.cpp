// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/helper_thread.hpp"

#include "rmem/base/host_limits.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
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

struct HelperThread::Shared {
    const pid_t pid = ::getpid();
    std::function<void()> end_sleep;
    std::mutex mutex;  ///< held where a sleeper might miss a change
    std::condition_variable changed;
    std::atomic<bool> is_stopping{false};
    std::thread thread;

    void wake() {
        { const std::lock_guard lock(mutex); }
        changed.notify_one();
    }
};

HelperThread::HelperThread(const char* name, std::function<void()> work,
                           std::function<void()> end_sleep)
    : shared_(std::make_unique<Shared>()) {
    shared_->end_sleep = std::move(end_sleep);
    const SignalsBlocked blocked;
    try {
        shared_->thread = std::thread([name, work = std::move(work)] {
            ::pthread_setname_np(::pthread_self(), name);
            work();
        });
    } catch (const std::system_error& error) {
        throw std::system_error(error.code(), limit_of_threads());
    }
}

HelperThread::~HelperThread() {
    if (::getpid() != shared_->pid) {
        static_cast<void>(shared_.release());
        return;
    }
    // (1) - this release-store synchronizes-with the acquire-load (2)
    shared_->is_stopping.store(true, std::memory_order_release);
    shared_->wake();
    if (shared_->end_sleep) shared_->end_sleep();
    shared_->thread.join();
}

bool HelperThread::is_stopping() const noexcept {
    // (2) - this acquire-load synchronizes-with the release-store (1)
    return shared_->is_stopping.load(std::memory_order_acquire);
}

bool HelperThread::pause(std::int64_t ns, const std::function<bool()>& until) {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, std::chrono::nanoseconds(ns),
                              [&] { return is_stopping() || (until && until()); });
    return !is_stopping();
}

void HelperThread::wake() {
    shared_->wake();
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
