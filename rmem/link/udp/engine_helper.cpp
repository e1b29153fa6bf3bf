// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine_helper.hpp"

#include <sys/prctl.h>

namespace rmem::udp {

namespace {

constexpr unsigned kMostEmptyLooks = 4;
constexpr std::int64_t kExactNs = 1'000;  // retransmissions are due in tens of microseconds

/// By how much this thread's timers may be late.
void set_slack(std::int64_t ns) noexcept {
    ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(ns));
}

}  // namespace

EngineHelper::EngineHelper(Engine& engine)
    : engine_(engine),
      thread_(
          "rmem-udp", [this] { work(); }, [this] { engine_.interrupt(); }) {}

void EngineHelper::set_always(bool always) {
    always_.store(always, std::memory_order_relaxed);  // relaxed is enough: wake() orders it
    thread_.wake();
}

void EngineHelper::begin_watching() {
    polls_actively_.store(true, std::memory_order_relaxed);  // relaxed is enough: wake() orders it
    thread_.wake();
    engine_.interrupt();
}

/// Sends what is due. Ends when there has been nothing for some time.
void EngineHelper::poll_actively() {
    if (engine_.coalesces()) {
        empty_looks_ = 0;
        if (engine_.is_overdue()) engine_.run();
    } else if (++empty_looks_ == kMostEmptyLooks) {
        empty_looks_ = 0;
        polls_actively_.store(
            false,
            std::memory_order_relaxed);  // relaxed is enough: the mutex of coalesces()
        if (engine_.coalesces())
            polls_actively_.store(true, std::memory_order_relaxed);  // enough: likewise
    }
}

/// Until the next look, or until something has changed.
void EngineHelper::pause() {
    const std::int64_t interval = interval_ns();
    if (interval == kLookNs) set_slack(kLateNs);
    thread_.pause(interval, [&] {
        // relaxed is enough: its setter wakes the thread
        return always_.load(std::memory_order_relaxed) || interval_ns() < interval;
    });
    set_slack(kExactNs);
}

void EngineHelper::work() {
    set_slack(kExactNs);
    // relaxed is enough here and below: hints, and the setter of a flag wakes the thread
    while (!thread_.is_stopping()) {
        const std::uint64_t before = attended_.get();
        if (!always_.load(std::memory_order_relaxed)) pause();
        const bool is_close = polls_actively_.load(std::memory_order_relaxed);
        const bool idle = !is_close && !is_attended_since(before);
        if (is_close) poll_actively();
        if (idle || always_.load(std::memory_order_relaxed)) run_until_attended();
    }
}

void EngineHelper::run_until_attended() {
    takeovers_.add();
    const std::uint64_t before = attended_.get();
    do {
        engine_.run();
        engine_.rest(interval_ns());
        if (thread_.is_stopping()) return;
        // relaxed is enough: who sets it wakes the thread
    } while (always_.load(std::memory_order_relaxed) || !is_attended_since(before));
}

}  // namespace rmem::udp
