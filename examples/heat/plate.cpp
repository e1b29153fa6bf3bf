// SPDX-License-Identifier: Apache-2.0
#include "plate.hpp"

#include <utility>

namespace heat {
namespace {

/// A disc in the lower left quarter, off the middle so that a mirrored picture would be noticed.
bool in_hot_disc(Size plate, std::size_t row, std::size_t column) {
    const auto rows = static_cast<double>(plate.rows);
    const auto columns = static_cast<double>(plate.columns);
    const double y = static_cast<double>(row) / rows - 0.65;
    const double x = static_cast<double>(column) / columns - 0.35;
    return x * x + y * y < 0.15 * 0.15;
}

}  // namespace

Band::Band(Size plate, std::size_t first, std::size_t count)
    : plate_(plate), first_(first), count_(count), now_((count + 2) * plate.columns) {
    for (std::size_t i = 0; i < count_; ++i) {
        const std::size_t plate_row = first_ + i;
        for (std::size_t j = 0; j < plate_.columns; ++j) {
            const bool hot = plate_row == 0 || in_hot_disc(plate_, plate_row, j);
            row(i)[j] = hot ? kHotDegrees : 0.0;
        }
    }
    next_ = now_;
}

void Band::step() {
    for (std::size_t i = 1; i <= count_; ++i) {
        const auto above = at(now_, i - 1);
        const auto here = at(now_, i);
        const auto below = at(now_, i + 1);
        const auto result = at(next_, i);
        if (is_edge(first_ + i - 1)) continue;  // both copies hold the edge since the beginning
        for (std::size_t j = 1; j + 1 < plate_.columns; ++j) {
            const double neighbours = (above[j] + below[j]) + (here[j - 1] + here[j + 1]);
            result[j] = here[j] + kConductivity * (neighbours - 4.0 * here[j]);
        }
    }
    std::swap(now_, next_);
}

std::vector<double> Band::changes() const {
    std::vector<double> sums(count_);
    for (std::size_t i = 0; i < count_; ++i) {
        const std::size_t start = (i + 1) * plate_.columns;
        for (std::size_t j = 0; j < plate_.columns; ++j) {
            const double change = now_[start + j] - next_[start + j];
            sums[i] += change * change;
        }
    }
    return sums;
}

}  // namespace heat
