// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The members of a run: one process at each card, who meet through the memory itself, so that they
/// need nothing but the cards.
///
/// Each member has a line of words that it alone writes, and a place for its findings; nothing lies
/// outside of the control area. A run has a number, which member 0 draws, so that what an earlier
/// one has left means nothing. A member that waits writes its line again and again, and findings
/// have a check sum: a card that breaks rules is to be reported, not to stop the run. For the same
/// reason all words of the line are small: their upper halves stay 0.
///
/// Invariants, executed: a member is one of those that there are, and nothing is written outside of
/// the control area.
/// Thread safety: one thread. Units: bytes, nanoseconds.
/// Progress: waits poll and give the processor away.
/// Errors: Error(timed_out) names the member that has not come; Error(config_mismatch) where one
///   has left for another run.

#include "tools/conform/card.hpp"
#include "tools/conform/finding.hpp"

#include <functional>
#include <string>
#include <vector>

namespace tools::conform {

inline constexpr std::size_t kLineBytes = 64;

class Members {
public:
    /// `at`: where the control area begins. Member 0 draws the run's number and greets who may
    /// come.
    Members(Card& card, unsigned self, unsigned count, std::size_t at, std::int64_t patience_ns);

    static std::size_t control_bytes(unsigned count) noexcept;

    unsigned self() const noexcept { return self_; }
    unsigned count() const noexcept { return count_; }
    /// How often they have met: the same number at all of them between two meetings.
    std::uint32_t step() const noexcept { return step_; }

    /// Returns when all are in the same run.
    void join();
    /// Returns when all members are here. Their earlier writes are there, if the card keeps order.
    void meet();
    /// Everybody's, by member.
    std::vector<Finding> exchange(const Finding& own);

    unsigned node_of(unsigned member) const;
    /// Whether the member's clock is this one's: it runs on the same host.
    bool shares_clock(unsigned member) const;
    /// Whether member 0 had begun before this one looked for the first time.
    bool came_late() const noexcept { return came_late_; }
    /// Whether member 0's greeting, which it wrote once, is here.
    bool has_greeting() const;

private:
    std::size_t word_of(unsigned member, unsigned word) const noexcept;
    std::size_t place_of(unsigned member) const noexcept;
    std::uint32_t load(unsigned member, unsigned word) const;
    void announce();
    void await(unsigned member, const std::function<bool()>& holds,
               const std::function<void()>& again);
    void meet(const std::function<void()>& again);
    [[noreturn]] void give_up_on(unsigned member) const;
    std::vector<std::uint32_t> greeting() const;

    Card& card_;
    unsigned self_, count_;
    std::size_t at_;
    std::int64_t patience_ns_;
    std::uint32_t host_;
    std::uint32_t run_ = 0, beat_ = 0, step_ = 0;
    bool came_late_ = false;
};

}  // namespace tools::conform
