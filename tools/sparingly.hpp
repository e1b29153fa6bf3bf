// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Sentences about strangers: those who reach a port decide how many there are, and a journal is
/// not theirs to fill. Lines left out are counted, and the next one that passes tells how many.
///
/// Invariant, executed: no more than kMaxInASecond pass in a second.
/// Thread safety: one thread. Units: nanoseconds of one clock.

#include "rmem/base/check.hpp"
#include "rmem/base/time.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace tools {

class Sparingly {
public:
    static constexpr unsigned kMaxInASecond = 5;

    /// The sentence as it is to be said; empty: it is not.
    std::string pass(const std::string& sentence, std::int64_t now_ns) {
        if (now_ns >= ends_ns_) ends_ns_ = now_ns + rmem::kNsPerSecond, said_ = 0;
        RMEM_CHECK(said_ <= kMaxInASecond);
        if (said_ == kMaxInASecond) return ++left_out_, "";
        ++said_;
        const std::uint64_t left_out = std::exchange(left_out_, 0);
        if (left_out == 0) return sentence;
        return fmt::format("{} ({} more such were left out before it)", sentence, left_out);
    }

private:
    std::int64_t ends_ns_ = 0;  ///< of the second
    unsigned said_ = 0;
    std::uint64_t left_out_ = 0;
};

}  // namespace tools
