// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_thread.hpp"

#include "rmem/base/time.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kLongestSleepNs = 3'600'000'000'000;
constexpr std::int64_t kAwayNs = 500'000;  // less than a time slice, more than a rank's turn
constexpr std::int64_t kLongestCrowdNs = 10'000'000'000;

}  // namespace

RingEngineThread::RingEngineThread(Ring& ring, unsigned rank, RingEngine& engine)
    : rank_(rank),
      engine_(engine),
      sleeping_(ring),
      brought_(engine.brought()),
      thread_(
          "rmem-ring", [this] { work(); }, [this] { sleeping_.wake(rank_); }) {}

void RingEngineThread::set_always(bool always) {
    always_.store(always, std::memory_order_relaxed);  // relaxed is enough: the wake orders it
    sleeping_.wake(rank_);
}

void RingEngineThread::work() {
    while (!thread_.is_stopping()) {
        if (is_always()) {
            run_always();
        } else {
            look();
        }
    }
}

/// Whether writes of others had to be applied, by any thread, or wait for it: not those that their
/// writers bring.
bool RingEngineThread::has_moved() noexcept {
    const std::uint64_t before = std::exchange(brought_, engine_.brought());
    return before != brought_ || engine_.lacks_writes(false);
}

void RingEngineThread::look() {
    const std::uint64_t written = engine_.written_in_all();
    idle_looks_ = has_moved() ? 0 : idle_looks_ + 1;
    const bool is_idle = idle_looks_ >= kIdleLooks;
    const bool is_called = is_idle ? sleep(State::asleep, kLongestSleepNs, written)
                                   : sleep(State::resting, HelperThread::kLookNs, written);
    if (is_idle) idle_looks_ = 0;
    engine_.look_at_members();
    if (is_called) {
        catch_up();
    } else if (engine_.ran_ns() == ran_ns_) {
        engine_.run(RingEngine::Caller::helper);
    }
    ran_ns_ = engine_.ran_ns();
}

/// A rank waits until this node has what was written.
void RingEngineThread::catch_up() {
    const std::int64_t end = now_ns() + kCatchUpNs;
    while (engine_.run(RingEngine::Caller::helper) && engine_.lacks_writes()) {
        const std::int64_t now = now_ns();
        if (now >= end || engine_.next_due_ns() >= now + kNearNs) return;
        cpu_relax();
    }
}

void RingEngineThread::run_always() {
    const bool polls = now_ns() >= crowded_until_ns_;
    if (std::exchange(polls_, polls) != polls) {
        if (polls) {
            HelperThread::leave_real_time();
        } else {
            static_cast<void>(HelperThread::ask_for_real_time());
        }
    }
    const std::int64_t began = now_ns();
    const std::int64_t linger = polls ? kPollNs : kLingerNs;
    std::int64_t moved_ns = began;
    bool has_napped = true;  // whose writer need not wake it again so soon
    while (is_always() && !thread_.is_stopping()) {
        const std::uint64_t written = engine_.written_in_all();
        const bool ran = engine_.run(RingEngine::Caller::helper);
        const std::int64_t now = now_ns();
        if (now - checked_ns_ >= HelperThread::kLookNs) {
            checked_ns_ = now;
            engine_.look_at_members();
        }
        if (has_moved()) {
            moved_ns = now;
            has_napped = false;
        }
        const std::int64_t due = engine_.next_due_ns();
        if (!ran || (!polls && now - began >= kNapNs)) {
            // Another thread runs it; or the programs that look at the memory need the processor.
            static_cast<void>(sleep(State::resting, kNapNs, written));
            return;
        }
        if (due <= now + kNearNs || (due == kNever && now - moved_ns < linger)) {
            if (!polls) {
                cpu_relax();
            } else if (!has_processor_to_spare(now)) {
                return;
            }
        } else if (due != kNever) {
            static_cast<void>(sleep(State::asleep, due - kNearNs - now, written));
        } else if (!polls && !std::exchange(has_napped, true)) {
            static_cast<void>(sleep(State::resting, kNapNs, written));
        } else {
            static_cast<void>(sleep(State::asleep, kLongestSleepNs, written));
            return;
        }
    }
}

/// Offers the processor to others. One that takes it for long would do so each time: then this
/// thread polls no longer, and tries again later and later.
bool RingEngineThread::has_processor_to_spare(std::int64_t now) {
    ::sched_yield();
    const std::int64_t back = now_ns();
    if (back - now < kAwayNs) {
        if (back - crowded_until_ns_ > kShortestCrowdNs) crowd_ns_ = kShortestCrowdNs;
        return true;
    }
    crowded_until_ns_ = back + crowd_ns_;
    crowd_ns_ = std::min(2 * crowd_ns_, kLongestCrowdNs);
    return false;
}

/// Returns true if called, false when the time is over. It does not sleep if more than `written`
/// is in the logs.
bool RingEngineThread::sleep(State state, std::int64_t longest_ns, std::uint64_t written) {
    const bool always = is_always();
    sleeping_.lie_down(rank_, state);
    const bool is_wanted = thread_.is_stopping() || is_always() != always;
    const bool has_news = state == State::asleep && engine_.written_in_all() != written;
    if (!is_wanted && !has_news) sleeping_.sleep(rank_, state, longest_ns);
    return !sleeping_.rise(rank_) || has_news;
}

}  // namespace rmem
