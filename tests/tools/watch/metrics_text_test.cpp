// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/metrics_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace tools {
namespace {

using ::testing::HasSubstr;

TEST(MetricsText, has_help_type_and_samples_of_a_family) {
    MetricsText text;
    text.family("rmem_x_total", MetricType::counter, "so many");
    text.sample({{"ring", "rig"}, {"rank", "0"}}, 7);
    text.sample({}, 8);
    text.family("rmem_y_seconds", MetricType::gauge, "so long");
    text.sample_seconds({{"ring", "rig"}}, 1500);
    EXPECT_EQ(text.text(),
              "# HELP rmem_x_total so many\n"
              "# TYPE rmem_x_total counter\n"
              "rmem_x_total{ring=\"rig\",rank=\"0\"} 7\n"
              "rmem_x_total 8\n"
              "# HELP rmem_y_seconds so long\n"
              "# TYPE rmem_y_seconds gauge\n"
              "rmem_y_seconds{ring=\"rig\"} 1.5e-06\n");
}

TEST(MetricsText, escapes_what_would_end_a_label_or_a_line) {
    MetricsText text;
    text.family("rmem_x", MetricType::gauge, "a \"b\" \\ c\nd");
    text.sample({{"ring", "a\"b\\c\nd"}}, 1);
    EXPECT_THAT(text.text(), HasSubstr("# HELP rmem_x a \"b\" \\\\ c\\nd\n"));
    EXPECT_THAT(text.text(), HasSubstr("rmem_x{ring=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(MetricsText, keeps_large_counters_exact) {
    MetricsText text;
    text.family("rmem_x_total", MetricType::counter, "");
    text.sample({}, UINT64_MAX);
    EXPECT_THAT(text.text(), HasSubstr("rmem_x_total 18446744073709551615\n"));
}

TEST(MetricsText, writes_a_histogram_with_buckets_that_add_up_sum_and_count) {
    const auto histogram = std::make_unique<rmem::Histogram>();
    for (const std::uint64_t ns : {100ULL, 200ULL, 300ULL, 60'000'000'000ULL}) {
        histogram->record(ns);
    }
    MetricsText text;
    text.family("rmem_t_seconds", MetricType::histogram, "times");
    text.histogram({{"node", "0"}}, HistogramSample(*histogram));
    EXPECT_THAT(text.text(), HasSubstr("# TYPE rmem_t_seconds histogram\n"
                                       "rmem_t_seconds_bucket{node=\"0\",le=\"1.27e-07\"} 1\n"
                                       "rmem_t_seconds_bucket{node=\"0\",le=\"2.55e-07\"} 2\n"
                                       "rmem_t_seconds_bucket{node=\"0\",le=\"5.11e-07\"} 3\n"));
    EXPECT_THAT(text.text(), HasSubstr("le=\"17.179869183\"} 3\n"
                                       "rmem_t_seconds_bucket{node=\"0\",le=\"+Inf\"} 4\n"
                                       "rmem_t_seconds_sum{node=\"0\"} 6"));
    EXPECT_THAT(text.text(), HasSubstr("rmem_t_seconds_count{node=\"0\"} 4\n"));
}

TEST(MetricsText, writes_a_histogram_of_nothing_whole) {
    MetricsText text;
    text.family("rmem_t_seconds", MetricType::histogram, "times");
    text.histogram({}, {});
    EXPECT_THAT(text.text(), HasSubstr("rmem_t_seconds_bucket{le=\"+Inf\"} 0\n"
                                       "rmem_t_seconds_sum 0\nrmem_t_seconds_count 0\n"));
}

}  // namespace
}  // namespace tools
