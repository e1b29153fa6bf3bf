// SPDX-License-Identifier: Apache-2.0
// What ports-bench reads out of its curves.
#include "bench/ports/line.hpp"

#include <gtest/gtest.h>

namespace {

const std::vector<double> kSizes = {8, 64, 512, 4096};

std::vector<double> times_of(double fixed, double per_byte) {
    std::vector<double> times;
    for (const double size : kSizes) times.push_back(fixed + per_byte * size);
    return times;
}

TEST(Line, is_found_where_there_is_one) {
    const bench::Line line = bench::fit_relative(kSizes, times_of(100, 0.25));
    EXPECT_NEAR(line.fixed, 100, 1e-6);
    EXPECT_NEAR(line.per_byte, 0.25, 1e-9);
}

TEST(Line, follows_small_messages_as_much_as_large_ones) {
    auto times = times_of(100, 0.25);
    times.back() +=
        100;  // a tenth of the largest: by absolute distances it would bend the line for all
    const bench::Line line = bench::fit_relative(kSizes, times);
    EXPECT_NEAR(line.fixed, 100, 2);
    EXPECT_GT(line.per_byte, 0.25);
}

TEST(Rate, is_reached_between_two_sizes) {
    // 8 bytes in 8 ns, 64 in 32: rates 1 and 2, so 1.5 lies half way.
    const auto size = bench::size_at_rate({8, 64}, {8, 32}, 1.5);
    ASSERT_TRUE(size);
    EXPECT_DOUBLE_EQ(*size, 36);
}

TEST(Rate, may_be_reached_by_the_smallest_size_or_by_none) {
    EXPECT_EQ(bench::size_at_rate(kSizes, times_of(0, 1), 0.5), 8);
    EXPECT_EQ(bench::size_at_rate(kSizes, times_of(100, 1), 1), std::nullopt);
}

TEST(Rate, the_rate_of_half_the_asymptote_is_reached_where_the_line_says) {
    std::vector<double> sizes, times;
    for (double n = 1; n < 4000; n += 1) {
        sizes.push_back(n);
        times.push_back(100 + 0.25 * n);
    }
    const bench::Line line = bench::fit_relative(sizes, times);
    EXPECT_NEAR(*bench::size_at_rate(sizes, times, 0.5 / line.per_byte), 400, 1e-3);
}

}  // namespace
