// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What one member has found out about one rule.
///
/// It consists of words, so that members can hand theirs over through the memory that is tested.
///
/// Thread safety: values. Units: nanoseconds, counts; what is more than a word holds is its most.

#include "rmem/base/histogram.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tools::conform {

inline std::uint32_t fitted_word(std::uint64_t value) noexcept {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::min(value, kMax));
}

/// A histogram's figures.
struct Times {
    std::uint32_t samples = 0, least = 0, p50 = 0, p99 = 0, p999 = 0, max = 0;

    static Times of(const rmem::Histogram& histogram, std::uint64_t least) noexcept {
        return {fitted_word(histogram.count()),         fitted_word(least),
                fitted_word(histogram.quantile(0.50)),  fitted_word(histogram.quantile(0.99)),
                fitted_word(histogram.quantile(0.999)), fitted_word(histogram.max())};
    }
};

struct Counterexample {
    std::uint32_t how = 0;  ///< which of Litmus::breaks it is
    std::uint32_t writer = 0, round = 0;
    std::uint32_t line = 0;  ///< of the litmus's place
    std::uint32_t seen = 0, expected = 0;
};

struct Finding {
    std::uint32_t offered = 1;       ///< 0: the card has no such thing
    std::uint32_t rounds = 0;        ///< that were made
    std::uint32_t observations = 0;  ///< rounds in which a break would have been seen
    std::uint32_t noted = 0;         ///< what the litmus counts besides (Litmus::note)
    std::uint32_t breaks = 0;
    Counterexample first;
    Times times, jitter;

    void broken(const Counterexample& counterexample) noexcept {
        if (breaks++ == 0) first = counterexample;
    }
};
static_assert(std::is_trivially_copyable_v<Finding> && sizeof(Finding) % 4 == 0);

}  // namespace tools::conform
