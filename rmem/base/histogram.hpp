// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A histogram of times that lies in shared memory: one writer, any number of readers.
///
/// Buckets are logarithmic with 16 steps per power of two, so a percentile read from it is within
/// 1/16 of the true value, from 1 ns to 2^40 ns (18 minutes); larger values go to the last bucket.
/// Thread safety: one writer; readers see each bucket whole, the sum of them about right.
/// Debian has no package for an HDR histogram that can lie in shared memory: hence these lines.

#include "rmem/base/relaxed.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rmem {

class Histogram {
public:
    static constexpr unsigned kStepBits = 4;
    static constexpr unsigned kMaxBits = 40;
    static constexpr std::size_t kBuckets = (kMaxBits - kStepBits + 1) << kStepBits;

    /// `times`: that many values, all the same.
    void record(std::uint64_t value, std::uint64_t times = 1) noexcept {
        buckets_[index_of(value)].add(times);
        max_.raise_to(value);
    }

    /// For several that record.
    void record_shared(std::uint64_t value, std::uint64_t times = 1) noexcept {
        buckets_[index_of(value)].add_shared(times);
        max_.raise_shared_to(value);
    }

    std::uint64_t count() const noexcept {
        std::uint64_t sum = 0;
        for (const auto& bucket : buckets_) sum += bucket.get();
        return sum;
    }

    /// The smallest bucket bound that at least `share` (0…1) of the values do not exceed; 0 if
    /// empty.
    std::uint64_t quantile(double share) const noexcept {
        const std::uint64_t total = count();
        if (total == 0) return 0;
        const double wanted = share * static_cast<double>(total);
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i + 1 < kBuckets; ++i) {
            seen += buckets_[i].get();
            if (seen > 0 && static_cast<double>(seen) >= wanted) {
                return std::min(upper_bound_of(i), max());
            }
        }
        return max();
    }

    /// How many values are in a bucket, for callers that want all of them. `bucket` < kBuckets.
    std::uint64_t values_in(std::size_t bucket) const noexcept { return buckets_[bucket].get(); }

    std::uint64_t max() const noexcept { return max_.get(); }

    static constexpr std::size_t index_of(std::uint64_t value) noexcept {
        constexpr std::uint64_t kSteps = 1U << kStepBits;
        if (value < kSteps) return static_cast<std::size_t>(value);
        const auto bits = static_cast<unsigned>(std::bit_width(value));
        if (bits > kMaxBits) return kBuckets - 1;
        const unsigned shift = bits - 1 - kStepBits;
        return ((std::size_t{bits} - kStepBits) << kStepBits) + ((value >> shift) & (kSteps - 1));
    }

    static constexpr std::uint64_t upper_bound_of(std::size_t index) noexcept {
        constexpr std::size_t kSteps = std::size_t{1} << kStepBits;
        if (index < kSteps) return index;
        const auto shift = static_cast<unsigned>((index >> kStepBits) - 1);
        return (((index & (kSteps - 1)) + kSteps + 1) << shift) - 1;
    }

private:
    std::array<Counter<>, kBuckets> buckets_;
    Counter<> max_;
};

}  // namespace rmem
