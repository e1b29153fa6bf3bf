// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Samples of a figure and their statistics. Percentiles are by nearest rank; nothing is averaged
/// away and nothing is dropped.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tools {

/// The smallest value that at least `share` (0…1) of the sorted samples do not exceed.
inline double quantile(const std::vector<double>& sorted, double share) {
    if (sorted.empty()) return 0;
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

struct Percentiles {
    std::size_t samples = 0;
    double p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;

    explicit Percentiles(std::vector<double> values) : samples(values.size()) {
        if (values.empty()) return;
        std::sort(values.begin(), values.end());
        p50 = quantile(values, 0.50);
        p90 = quantile(values, 0.90);
        p99 = quantile(values, 0.99);
        p999 = quantile(values, 0.999);
        max = values.back();
    }
};

/// As tables show a figure: "12.3", from 100 on "123".
inline std::string number(double value) {
    return fmt::format("{:.{}f}", value, value < 100 ? 1 : 0);
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return quantile(values, 0.5);
}

/// Of compare(a, b), round by round, since both of a round met the same machine.
template <class Compare>
double median_of_rounds(const std::vector<double>& a, const std::vector<double>& b,
                        Compare&& compare) {
    std::vector<double> result;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        result.push_back(compare(a[i], b[i]));
    return median(std::move(result));
}
inline double median_ratio(const std::vector<double>& a, const std::vector<double>& b) {
    return median_of_rounds(a, b, std::divides<>());
}

}  // namespace tools
