// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Metrics in the Prometheus text format, version 0.0.4: families of samples, each with its help
/// and type.
///
///     MetricsText text;
///     text.family("rmem_rank_up", MetricType::gauge, "1 while …");
///     text.sample({{"ring", "rig"}, {"rank", "0"}}, 1);
///
/// Names are the caller's to choose well; help and label values may hold anything.
/// Invariants, executed: a sample is of a family, and a histogram's buckets hold no fewer than
/// those before them.
/// Thread safety: none. Units: seconds and bytes, as Prometheus wants them.

#include "tools/watch/histogram_sample.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tools {

enum class MetricType { counter, gauge, histogram };

using Labels = std::vector<std::pair<std::string, std::string>>;

class MetricsText {
public:
    void family(const std::string& name, MetricType type, const std::string& help);
    /// Of the last family.
    void sample(const Labels& labels, std::uint64_t value);
    void sample_seconds(const Labels& labels, double nanoseconds);
    /// Buckets that end before each power of two, from 128 ns to 17 s; the sum is good to 1/16.
    void histogram(const Labels& labels, const HistogramSample& times);

    const std::string& text() const { return text_; }

private:
    void line(const std::string& suffix, const Labels& labels, const std::string& value);

    std::string name_, text_;
};

}  // namespace tools
