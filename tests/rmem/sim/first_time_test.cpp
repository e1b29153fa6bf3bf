// SPDX-License-Identifier: Apache-2.0
#include "rmem/sim/first_time.hpp"

#include "rmem/base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmem::sim {
namespace {

TEST(FirstTime, none_is_set_at_first) {
    EXPECT_EQ(FirstTime(3).time_ns(), kNever);
    EXPECT_EQ(FirstTime().time_ns(), kNever);
}

TEST(FirstTime, is_the_least_and_the_first_of_equal_ones) {
    for (const std::size_t count : {1U, 2U, 3U, 17U, 257U}) {
        FirstTime first(count);
        std::vector<std::int64_t> times(count, kNever);
        Random random(count);
        for (int n = 0; n < 2000; ++n) {
            const auto index = static_cast<std::size_t>(random.below(count));
            const auto time = static_cast<std::int64_t>(random.below(50));
            times[index] = time == 0 ? kNever : time;
            first.set(index, times[index]);
            const auto least = std::min_element(times.begin(), times.end());
            ASSERT_EQ(first.time_ns(), *least);
            if (*least != kNever) {
                ASSERT_EQ(first.index(), static_cast<std::size_t>(least - times.begin()));
            }
        }
    }
}

}  // namespace
}  // namespace rmem::sim
