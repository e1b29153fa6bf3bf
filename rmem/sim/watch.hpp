// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The words that a polling process looks at, so that it need not be simulated poll by poll.
///
/// Between two waits a process polls: it loads some words, at some times, and finds nothing. Until
/// one of those words changes every further poll would do the same. So the process is parked, and
/// when a word changes its polls go on where they would be by then: at the first one that loads the
/// word no earlier than it changed.
///
/// Invariants  what is loaded, and parked, belongs to a poll that has begun, and comes no earlier.
/// Contract    a poll that finds nothing does nothing but load (and ask for room, which the process
///             looks after itself).
/// Thread safety: none. It allocates only while it grows.

#include "rmem/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmem::sim {

class Watch {
public:
    struct Word {
        std::uint64_t offset;
        std::uint32_t value;    ///< as it was loaded
        std::int64_t after_ns;  ///< how long after the poll's begin
    };

    /// A poll begins at this time.
    void begin(std::int64_t now_ns) {
        words_.clear();
        low_ = UINT64_MAX;
        high_ = 0;
        begun_ns_ = now_ns;
        on_ = true;
    }
    void end() { on_ = false; }
    bool is_on() const { return on_; }

    void loaded(std::uint64_t offset, std::uint32_t value, std::int64_t now_ns) {
        RMEM_CHECK(on_ && now_ns >= begun_ns_);
        words_.push_back({offset, value, now_ns - begun_ns_});
        low_ = std::min(low_, offset);
        high_ = std::max(high_, offset);
    }

    /// The poll found nothing, and the next one would begin at this time.
    void park(std::int64_t now_ns) {
        RMEM_CHECK(on_ && now_ns >= begun_ns_);
        period_ns_ = std::max<std::int64_t>(now_ns - begun_ns_, 1);
        next_ns_ = now_ns;
    }
    const std::vector<Word>& words() const { return words_; }
    bool may_touch(std::uint64_t offset, std::uint64_t bytes) const {
        return offset <= high_ && offset + bytes > low_;
    }
    /// When the first poll begins that loads this word no earlier than `changed_ns`.
    std::int64_t seen_by_poll_at(const Word& word, std::int64_t changed_ns) const {
        return poll_from(changed_ns - word.after_ns);
    }
    /// The first poll that begins no earlier than this.
    std::int64_t poll_from(std::int64_t time_ns) const {
        const std::int64_t late = time_ns - next_ns_;
        return late <= 0 ? next_ns_ : next_ns_ + (late + period_ns_ - 1) / period_ns_ * period_ns_;
    }

private:
    std::vector<Word> words_;
    std::uint64_t low_ = UINT64_MAX, high_ = 0;
    std::int64_t begun_ns_ = 0, next_ns_ = 0, period_ns_ = 1;
    bool on_ = false;
};

}  // namespace rmem::sim
