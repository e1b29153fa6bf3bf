// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The stages of a wait: spin, yield, sleep. Which of them the next step is, and when it is time to
/// look at the clock; what a step does is the waiter's.
///
///     stages.begin();
///     while (!came()) {
///         if (stages.spins_on(limit)) { cpu_relax(); continue; }
///         switch (stages.next(now_ns(), limit)) …
///     }
///
/// A waiter spins for `limit` polls, yields for kYieldNs and until it has had `least_yields`
/// turns, then arms itself (from then on others wake it), polls once more, and sleeps.
/// Time is passed in. Thread safety: one thread. Units: nanoseconds.

#include <cstdint>

namespace rmem {

inline constexpr unsigned kSpinPollsPerCheck = 4'096;  ///< polls between looks at the clock
inline constexpr std::int64_t kYieldNs = 1'000'000;    ///< yield this long before sleeping

class WaitStages {
public:
    enum class Act { spin, yield, arm, sleep };

    /// `least_yields`: in a large crowd a turn comes later than kYieldNs.
    explicit WaitStages(unsigned least_yields = 0) noexcept : least_yields_(least_yields) {}

    void begin() noexcept {
        polls_ = 0;
        stage_ = Act::spin;
    }
    /// Counts a poll that found nothing. Whether to spin on without a look at the clock, which is
    /// due each `per_check` polls, a power of two.
    [[nodiscard]] bool spins_on(unsigned limit, unsigned per_check = kSpinPollsPerCheck) noexcept {
        return ++polls_ < limit && (polls_ & (per_check - 1)) != 0;
    }
    /// Whether spinning is over with this step, once in a wait; next() finds that by itself.
    bool ends_spinning(std::int64_t now, unsigned limit) noexcept {
        if (stage_ != Act::spin || polls_ < limit) return false;
        stage_ = Act::yield;
        yielding_since_ns_ = now;
        yields_ = 0;
        return true;
    }
    /// What this step does, after spins_on().
    [[nodiscard]] Act next(std::int64_t now, unsigned limit) noexcept {
        ends_spinning(now, limit);
        if (stage_ == Act::spin) return Act::spin;
        polls_ = limit;  // the next step comes here again
        if (stage_ == Act::sleep) return Act::sleep;
        if (now - yielding_since_ns_ >= kYieldNs && yields_ >= least_yields_) {
            stage_ = Act::sleep;
            return Act::arm;
        }
        ++yields_;
        return Act::yield;
    }
    [[nodiscard]] bool is_spinning() const noexcept { return stage_ == Act::spin; }
    [[nodiscard]] bool is_sleeping() const noexcept { return stage_ == Act::sleep; }

private:
    Act stage_ = Act::spin;  ///< spin, yield or sleep
    unsigned polls_ = 0;
    unsigned yields_ = 0;  ///< since it yields
    unsigned least_yields_;
    std::int64_t yielding_since_ns_ = 0;
};

}  // namespace rmem
