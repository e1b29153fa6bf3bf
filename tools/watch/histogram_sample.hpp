// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A histogram of times (rmem/base/histogram.hpp) as it was at one instant, to be subtracted and
/// added.
///
/// Values are nanoseconds. Percentiles are bucket bounds, within 1/16 of the truth.
/// Invariants, executed: a difference and what it is from make the whole again; shares are from 0
/// to 1, and powers below 2^64.
/// Thread safety: none; a plain value.

#include "rmem/base/histogram.hpp"

#include <cstdint>
#include <vector>

namespace tools {

class HistogramSample {
public:
    HistogramSample() = default;
    explicit HistogramSample(const rmem::Histogram& histogram);

    /// Those of another node as well.
    void add(const HistogramSample& other);
    /// The difference from an earlier sample. Its greatest value is known as a bucket bound only.
    /// After a new start (fewer values than before) all are new.
    HistogramSample since(const HistogramSample& earlier) const;

    std::uint64_t count() const;
    /// As Histogram::quantile.
    std::uint64_t quantile(double share) const;
    std::uint64_t max() const { return max_; }
    /// How many values are at most 2^bits - 1.
    std::uint64_t count_below_power(unsigned bits) const;
    /// Of all values; each counts as its bucket's bound, so up to 1/16 too much.
    double sum() const;

private:
    std::vector<std::uint64_t> counts_;  ///< empty: nothing was there
    std::uint64_t max_ = 0;
};

}  // namespace tools
