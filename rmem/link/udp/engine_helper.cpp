// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine_helper.hpp"

#include "rmem/base/fence.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace rmem::udp {

namespace {

constexpr unsigned kMaxEmptyLooks = 4;
constexpr std::int64_t kShare = 20;        // of a processor's time looks take one part of as many
constexpr unsigned long kExactNs = 1'000;  // by which this thread's timers may be late:
// retransmissions are due in tens of microseconds
constexpr unsigned kSteady = 8;                      // datagrams
constexpr std::int64_t kLongNs = 3'600'000'000'000;  // until somebody wakes it

}  // namespace

EngineHelper::EngineHelper(Engine& engine)
    : engine_(engine),
      neighbours_(engine.ring()),
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

/// The next look comes when this one's share of a processor is over.
void EngineHelper::pace_looks() noexcept {
    timespec spent{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    const std::int64_t now = spent.tv_sec * 1'000'000'000 + spent.tv_nsec;
    const std::int64_t cost = now - std::exchange(spent_ns_, now);
    active_ns_ = std::clamp(kShare * cost, kLeastActiveNs, kMaxActiveNs);
}

/// Sends what is due. Ends when there has been nothing for some time.
void EngineHelper::poll_actively() {
    if (const std::int64_t since = engine_.open_since_ns(); since != kNever) {
        empty_looks_ = 0;
        look_ns_ = std::min(2 * look_ns_, kMaxActiveNs);
        pace_looks();
        if (now_ns() - since >= kLazyNs) engine_.take_all();
    } else if (++empty_looks_ == kMaxEmptyLooks) {
        empty_looks_ = 0;
        look_ns_ = kLazyNs;
        polls_actively_.store(false,
                              std::memory_order_relaxed);  // relaxed is enough: the fence orders it
        heavy_fence();  // that the program sees this, or its log is seen
        if (engine_.open_since_ns() != kNever)
            polls_actively_.store(true, std::memory_order_relaxed);  // enough: likewise
    }
}

void EngineHelper::follow_datagrams() noexcept {
    const int from = neighbours_.processor_of(engine_.work().heard_from());
    times_ = from == next_ ? times_ + 1 : 1;
    next_ = from;
    if (from < 0 || from == processor_ || times_ < kSteady) return;
    processor_ = from;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(from), &one);
    // One that it may not use is refused.
    static_cast<void>(::sched_setaffinity(0, sizeof one, &one));
}

/// Until the next look, or until something has changed.
void EngineHelper::pause() {
    if (is_active()) {
        thread_.pause(active_ns_, [&] { return is_always(); });
    } else if (engine_.sleeps()) {
        thread_.pause(kLongNs, [&] { return is_always() || is_active() || !engine_.sleeps(); });
    } else {
        thread_.pause(kLookNs, [&] { return is_always() || is_active(); });
    }
}

void EngineHelper::work() {
    engine_.work().show_real_time(HelperThread::ask_for_real_time());
    ::prctl(PR_SET_TIMERSLACK, kExactNs);
    while (!thread_.is_stopping()) {
        const std::uint64_t before = attendance();
        if (!is_always()) pause();
        if (is_active()) poll_actively();
        if (is_always() || (!is_active() && !is_attended_since(before))) stand_in();
    }
}

void EngineHelper::stand_in() {
    takeovers_.add();
    const std::uint64_t before = attendance();
    do {
        engine_.stand_in(is_active() ? look_ns_ : 0);
        follow_datagrams();
        if (is_active()) poll_actively();
        if (thread_.is_stopping()) return;
    } while (is_always() || (!is_active() && !is_attended_since(before)));
}

}  // namespace rmem::udp
