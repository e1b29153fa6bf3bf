// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/histogram_sample.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace tools {
namespace {

struct HistogramSampleTest : ::testing::Test {
    std::unique_ptr<rmem::Histogram> histogram = std::make_unique<rmem::Histogram>();
    HistogramSample sample() const { return HistogramSample(*histogram); }
};

TEST_F(HistogramSampleTest, has_the_percentiles_of_its_histogram) {
    for (unsigned i = 1; i <= 1000; ++i) histogram->record(i * 100);
    EXPECT_EQ(sample().count(), 1000U);
    for (const double share : {0.0, 0.5, 0.99, 1.0}) {
        EXPECT_EQ(sample().quantile(share), histogram->quantile(share)) << share;
    }
    EXPECT_EQ(sample().max(), 100'000U);
}

TEST_F(HistogramSampleTest, a_sample_of_nothing_is_zero) {
    EXPECT_EQ(HistogramSample().count(), 0U);
    EXPECT_EQ(HistogramSample().quantile(0.5), 0U);
    EXPECT_EQ(HistogramSample().count_below_power(30), 0U);
    EXPECT_EQ(sample().quantile(0.99), 0U);
}

TEST_F(HistogramSampleTest, tells_what_came_between_two_samples) {
    histogram->record(1'000'000);
    const auto before = sample();
    for (int i = 0; i < 10; ++i) histogram->record(500);
    const auto since = sample().since(before);
    EXPECT_EQ(since.count(), 10U);
    EXPECT_NEAR(static_cast<double>(since.quantile(0.99)), 500, 32);
    EXPECT_NEAR(static_cast<double>(since.max()), 500, 32)
        << "the greatest of before is none of it";
    EXPECT_EQ(sample().since(sample()).count(), 0U);
}

TEST_F(HistogramSampleTest, takes_all_as_new_after_a_new_start) {
    for (int i = 0; i < 10; ++i) histogram->record(500);
    const auto before = sample();
    histogram = std::make_unique<rmem::Histogram>();
    histogram->record(500);
    EXPECT_EQ(sample().since(before).count(), 1U);
}

TEST_F(HistogramSampleTest, adds_up) {
    histogram->record(10);
    HistogramSample both;
    both.add(sample());
    histogram->record(20'000);
    both.add(sample());
    EXPECT_EQ(both.count(), 3U);
    EXPECT_EQ(both.max(), 20'000U);
}

TEST_F(HistogramSampleTest, counts_exactly_below_powers_of_two) {
    for (const std::uint64_t value : {127U, 128U, 255U, 256U}) histogram->record(value);
    EXPECT_EQ(sample().count_below_power(7), 1U);
    EXPECT_EQ(sample().count_below_power(8), 3U);
    EXPECT_EQ(sample().count_below_power(9), 4U);
}

TEST_F(HistogramSampleTest, knows_the_sum_to_a_sixteenth) {
    double sum = 0;
    for (unsigned i = 1; i <= 1000; ++i) {
        histogram->record(i * 77);
        sum += i * 77;
    }
    EXPECT_GE(sample().sum(), sum);
    EXPECT_LE(sample().sum(), sum * 17 / 16);
}

}  // namespace
}  // namespace tools
