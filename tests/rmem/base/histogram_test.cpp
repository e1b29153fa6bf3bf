// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/histogram.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace rmem {
namespace {

std::unique_ptr<Histogram> empty() {
    return std::make_unique<Histogram>();
}

TEST(HistogramTest, small_values_are_exact) {
    const auto histogram = empty();
    EXPECT_EQ(histogram->quantile(0.5), 0U) << "an empty one has nothing";
    EXPECT_EQ(histogram->max(), 0U);
    for (std::uint64_t value = 1; value <= 10; ++value) histogram->record(value);
    EXPECT_EQ(histogram->count(), 10U);
    for (const auto& [q, value] :
         {std::pair{0.0, 1U}, {0.1, 1U}, {0.5, 5U}, {0.51, 6U}, {1.0, 10U}})
        EXPECT_EQ(histogram->quantile(q), value) << q;
}

TEST(HistogramTest, the_median_of_two_is_the_smaller_and_no_quantile_exceeds_the_maximum) {
    const auto histogram = empty();
    histogram->record(3);
    histogram->record(1000);
    EXPECT_EQ(histogram->quantile(0.5), 3U);
    EXPECT_EQ(histogram->quantile(0.9), 1000U) << "not the bucket's bound";
}

TEST(HistogramTest, every_value_lies_in_its_bucket_and_within_a_sixteenth_of_its_bound) {
    for (std::uint64_t value = 0; value < (std::uint64_t{1} << 39); value += 1 + value / 7) {
        const std::size_t index = Histogram::index_of(value);
        ASSERT_LT(index, Histogram::kBuckets);
        ASSERT_GE(Histogram::upper_bound_of(index), value);
        ASSERT_TRUE(index == 0 || Histogram::upper_bound_of(index - 1) < value);
        ASSERT_LE(Histogram::upper_bound_of(index) - value, value / 16);
    }
}

TEST(HistogramTest, buckets_follow_one_another_without_a_gap) {
    for (std::size_t i = 0; i + 1 < Histogram::kBuckets; ++i) {
        ASSERT_EQ(Histogram::index_of(Histogram::upper_bound_of(i)), i);
        ASSERT_EQ(Histogram::index_of(Histogram::upper_bound_of(i) + 1), i + 1);
    }
}

TEST(HistogramTest, what_is_too_large_is_counted_and_shown_as_the_maximum) {
    const auto histogram = empty();
    constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
    histogram->record(5);
    histogram->record(kHuge);
    EXPECT_EQ(histogram->count(), 2U);
    EXPECT_EQ(histogram->max(), kHuge);
    EXPECT_EQ(histogram->quantile(1), kHuge);
    EXPECT_EQ(histogram->quantile(0.5), 5U);
}

}  // namespace
}  // namespace rmem
