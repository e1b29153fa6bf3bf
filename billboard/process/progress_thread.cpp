// SPDX-License-Identifier: Apache-2.0
#include "billboard/process/progress_thread.hpp"

#include "rmem/ring/waiting/waiting.hpp"

#include <sched.h>

namespace billboard {

namespace {

/// Looks that find nothing, each with a yield, before it sleeps: an answer to a handler's message
/// comes soon.
constexpr int kLooksBeforeSleep = 16;

}  // namespace

ProgressThread::ProgressThread(ProcessEndpoint& process)
    : process_(process),
      ring_(*process.endpoint().ring()),
      rank_(process.endpoint().rank()),
      thread_(
          "bbp-progress", [this] { run(); }, [this] { rmem::wake_rank(ring_, rank_); }) {}

void ProgressThread::run() {
    while (rest()) be_on_duty();
}

bool ProgressThread::rest() {
    while (thread_.pause(rmem::HelperThread::kLookNs)) {
        if (!process_.has_new_polls()) return true;
    }
    return false;
}

void ProgressThread::be_on_duty() {
    for (;;) {
        // (1) - this release-store synchronizes-with the acquire-exchanges (2) and (3)
        sleeps_on_duty_.store(true, std::memory_order_release);
        process_.sleeps_on_duty(true);
        const std::uint32_t seen = rmem::wake_count(ring_, rank_);
        rmem::ask_attention(ring_, rank_, rmem::kAttentionProgress);
        // What came before rang no bell. relaxed is enough: the exchange tells for certain
        if (!attend() && sleeps_on_duty_.load(std::memory_order_relaxed) && !thread_.is_stopping())
            rmem::sleep_until_woken(ring_, rank_, seen, rmem::kMaxSleepNs);
        process_.sleeps_on_duty(false);
        // (2) - this acquire-exchange synchronizes-with the release-store (1) and the release of
        // (3)
        const bool was_sent = !sleeps_on_duty_.exchange(false, std::memory_order_acq_rel);
        // So that messages that come while it is awake, or rests, do not ring.
        rmem::clear_attention(ring_, rank_, rmem::kAttentionProgress);
        if (was_sent || thread_.is_stopping() || attend_while_busy()) return;
    }
}

void ProgressThread::send_to_rest() noexcept {
    // (3) - this acquire-exchange synchronizes-with the release-store (1), its release with (2)
    if (!sleeps_on_duty_.exchange(false, std::memory_order_acq_rel)) return;
    process_.sleeps_on_duty(false);
    rmem::clear_attention(ring_, rank_, rmem::kAttentionProgress);
    rmem::wake_rank(ring_, rank_);
}

bool ProgressThread::attend() {
    const auto held = process_.enter_as_guest();
    return process_.attend_all();
}

/// Whether the program polls again.
bool ProgressThread::attend_while_busy() {
    for (int looks = 0; looks < kLooksBeforeSleep; ++looks) {
        if (attend()) looks = 0;
        ::sched_yield();
        if (process_.has_new_polls()) return true;
    }
    return false;
}

}  // namespace billboard
