// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which parts of a bank have memory behind them. What was never touched is zeros, and to read it
/// gives it memory: 64 nodes with banks of 8 MiB would spend seconds on that when they start.
///
///     TouchedPart parts(ring, node);
///     for (std::size_t at = 0; (at = parts.begin(at)) < bytes; at += page) …
///
/// Thread safety: one user. What others touch behind a place that was asked for shows when it is
/// asked for again after restart(), or behind the next part. Progress: two system calls for each
/// part.
/// Units: bytes from the beginning of the bank. A part ends where pages do.

#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"

#include <algorithm>
#include <cstddef>

namespace rmem {

class TouchedPart {
public:
    TouchedPart(const Ring& ring, unsigned node) noexcept
        : segment_(ring.segment()),
          bank_(static_cast<std::size_t>(ring.bank(node) - segment_.data())) {}

    /// Where the part begins that `at` lies in: `at`; or else the next one, which may lie beyond
    /// the bank.
    std::size_t begin(std::size_t at) noexcept {
        if (at < asked_ || at >= end_) {
            asked_ = at;
            begin_ = segment_.next_touched(bank_ + at) - bank_;
            end_ = segment_.next_untouched(bank_ + begin_) - bank_;
        }
        return std::max(at, begin_);
    }
    /// What was found out is not so any more.
    void restart() noexcept { asked_ = begin_ = end_ = 0; }

private:
    const Segment& segment_;
    const std::size_t bank_;
    std::size_t asked_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace rmem
