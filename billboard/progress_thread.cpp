// SPDX-License-Identifier: Apache-2.0
#include "billboard/progress_thread.hpp"

#include "rmem/signals_blocked.hpp"
#include "rmem/waiting.hpp"

#include <sched.h>
#include <unistd.h>

namespace billboard {

namespace {

/// Looks in vain, each with a yield, before it sleeps: an answer to what a handler sent comes soon.
constexpr int kLooksBeforeSleep = 16;

}  // namespace

ProgressThread::ProgressThread(ProcessEndpoint& process)
    : process_(process),
      ring_(*process.endpoint().ring()),
      rank_(process.endpoint().rank()),
      pid_(::getpid()) {
    rmem::register_membarrier();
    const rmem::SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
}

ProgressThread::~ProgressThread() {
    if (::getpid() != pid_) {  // a forked child has the object without the thread
        thread_.detach();
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    stopping_.notify_all();
    rmem::wake_rank(ring_, rank_);
    thread_.join();
    rmem::clear_attention(ring_, rank_, rmem::kAttentionProgress);
}

void ProgressThread::run() {
    while (rest()) be_on_duty();
}

bool ProgressThread::is_stopped() {
    const std::lock_guard lock(mutex_);
    return stop_;
}

bool ProgressThread::rest() {
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            if (stopping_.wait_for(lock, std::chrono::nanoseconds(kLookNs), [&] { return stop_; }))
                return false;
        }
        const auto held = process_.hold();
        if (!process_.has_new_polls()) return true;
    }
}

void ProgressThread::be_on_duty() {
    for (;;) {
        const std::uint32_t seen = rmem::wake_count(ring_, rank_);
        rmem::ask_attention(ring_, rank_, rmem::kAttentionProgress);
        attend_while_busy();  // what came before rang no bell
        if (is_stopped()) return;
        rmem::sleep_until_woken(ring_, rank_, seen, rmem::kMaxSleepNs);
        // So that what comes while it is awake does not ring.
        rmem::clear_attention(ring_, rank_, rmem::kAttentionProgress);
        if (is_stopped()) return;
        attend_while_busy();
        const auto held = process_.hold();
        if (process_.has_new_polls()) return;
    }
}

void ProgressThread::attend_while_busy() {
    for (int looks = 0; looks < kLooksBeforeSleep; ++looks) {
        {
            const auto held = process_.hold();
            if (process_.attend_all()) looks = 0;
        }
        ::sched_yield();
    }
}

}  // namespace billboard
