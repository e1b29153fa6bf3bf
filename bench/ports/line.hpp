// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Parameters of a curve of times over sizes.

#include <cstddef>
#include <optional>
#include <vector>

namespace bench {

/// a + b * m.
struct Line {
    double fixed = 0, per_byte = 0;
};

/// The line from which the values are away by the least of their own size: small messages count as
/// much as large ones.
inline Line fit_relative(const std::vector<double>& sizes, const std::vector<double>& times) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const double w = 1 / (times[i] * times[i]);
        n += w;
        x += w * sizes[i];
        y += w * times[i];
        xx += w * sizes[i] * sizes[i];
        xy += w * sizes[i] * times[i];
    }
    const double slope = (n * xy - x * y) / (n * xx - x * x);
    return {(y - slope * x) / n, slope};
}

/// The smallest size at which messages reach this rate, in bytes per unit of time; between two
/// sizes by the straight line of their rates.
inline std::optional<double> size_at_rate(const std::vector<double>& sizes,
                                          const std::vector<double>& times, double rate) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const double here = sizes[i] / times[i];
        if (here < rate) continue;
        if (i == 0) return sizes[0];
        const double before = sizes[i - 1] / times[i - 1];
        return sizes[i - 1] + (sizes[i] - sizes[i - 1]) * (rate - before) / (here - before);
    }
    return std::nullopt;
}

}  // namespace bench
