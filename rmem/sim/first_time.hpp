// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Some times, and which of them is the least; of equal ones the first. Changing one costs the
/// logarithm of their number.
///
/// Thread safety: none.

#include "rmem/base/time.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmem::sim {

class FirstTime {
public:
    /// All are kNever.
    explicit FirstTime(std::size_t count = 1) : tree_(2 * std::bit_ceil(count)) {}

    void set(std::size_t index, std::int64_t time_ns) noexcept {
        std::size_t at = tree_.size() / 2 + index;
        tree_[at] = {time_ns, index};
        while (at > 1) {
            at /= 2;
            const Entry& left = tree_[2 * at];
            const Entry& right = tree_[2 * at + 1];
            tree_[at] = right.time_ns < left.time_ns ? right : left;
        }
    }
    std::int64_t time_ns() const noexcept { return tree_[1].time_ns; }
    std::size_t index() const noexcept { return tree_[1].index; }

private:
    struct Entry {
        std::int64_t time_ns = kNever;
        std::size_t index = 0;
    };
    std::vector<Entry>
        tree_;  ///< 1 is the least of all, n that of 2n and 2n + 1; the last half is given
};

}  // namespace rmem::sim
