// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/histogram_sample.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <numeric>

namespace tools {

using rmem::Histogram;

HistogramSample::HistogramSample(const Histogram& histogram) : counts_(Histogram::kBuckets) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] = histogram.values_in(i);
    max_ = histogram.max();
}

void HistogramSample::add(const HistogramSample& other) {
    counts_.resize(std::max(counts_.size(), other.counts_.size()));
    for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
    max_ = std::max(max_, other.max_);
}

HistogramSample HistogramSample::since(const HistogramSample& earlier) const {
    if (counts_.empty() || earlier.counts_.size() != counts_.size()) return *this;
    HistogramSample difference = *this;
    difference.max_ = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        if (counts_[i] < earlier.counts_[i]) return *this;
        difference.counts_[i] -= earlier.counts_[i];
        if (difference.counts_[i] != 0) {
            difference.max_ = std::min(Histogram::upper_bound_of(i), max_);
        }
    }
    if (difference.counts_.back() != 0) difference.max_ = max_;
    RMEM_CHECK(difference.count() + earlier.count() == count() && difference.max_ <= max_);
    return difference;
}

std::uint64_t HistogramSample::count() const {
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::uint64_t HistogramSample::quantile(double share) const {
    RMEM_CHECK(share >= 0 && share <= 1);
    const double wanted = share * static_cast<double>(count());
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i + 1 < counts_.size(); ++i) {
        seen += counts_[i];
        if (seen > 0 && static_cast<double>(seen) >= wanted) {
            return std::min(Histogram::upper_bound_of(i), max_);
        }
    }
    return max_;
}

std::uint64_t HistogramSample::count_below_power(unsigned bits) const {
    RMEM_CHECK(bits < 64);
    const std::size_t end = std::min(Histogram::index_of(std::uint64_t{1} << bits), counts_.size());
    return std::accumulate(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(end),
                           std::uint64_t{0});
}

double HistogramSample::sum() const {
    double sum = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const auto bound = std::min(Histogram::upper_bound_of(i), max_);
        sum += static_cast<double>(counts_[i]) * static_cast<double>(bound);
    }
    return sum;
}

}  // namespace tools
