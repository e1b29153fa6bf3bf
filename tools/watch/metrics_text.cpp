// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/metrics_text.hpp"

#include "rmem/base/check.hpp"

#include <fmt/format.h>

#include <string_view>

namespace tools {

namespace {

constexpr unsigned kFirstPower = 7, kLastPower = 34;

/// Backslashes and new lines, in label values also quotes.
std::string escaped(std::string_view text, bool is_label) {
    std::string result;
    for (const char c : text) {
        if (c == '\\') {
            result += "\\\\";
        } else if (c == '\n') {
            result += "\\n";
        } else if (c == '"' && is_label) {
            result += "\\\"";
        } else {
            result += c;
        }
    }
    return result;
}

const char* name_of(MetricType type) {
    switch (type) {
        case MetricType::counter: return "counter";
        case MetricType::gauge: return "gauge";
        case MetricType::histogram: break;
    }
    return "histogram";
}

/// Shortest text that reads as the same number.
std::string seconds_text(double nanoseconds) {
    return fmt::format("{}", nanoseconds / 1e9);
}

}  // namespace

void MetricsText::family(const std::string& name, MetricType type, const std::string& help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name,
                         name_of(type));
}

void MetricsText::line(const std::string& suffix, const Labels& labels, const std::string& value) {
    RMEM_CHECK(!name_.empty());
    text_ += name_ + suffix;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first,
                             escaped(labels[i].second, true));
    }
    text_ += (labels.empty() ? " " : "} ") + value + "\n";
}

void MetricsText::sample(const Labels& labels, std::uint64_t value) {
    line("", labels, fmt::format("{}", value));
}

void MetricsText::sample_seconds(const Labels& labels, double nanoseconds) {
    line("", labels, seconds_text(nanoseconds));
}

void MetricsText::histogram(const Labels& labels, const HistogramSample& times) {
    Labels with_bound = labels;
    with_bound.emplace_back("le", "");
    std::uint64_t before = 0;
    for (unsigned power = kFirstPower; power <= kLastPower; ++power) {
        const auto bound = static_cast<double>((std::uint64_t{1} << power) - 1);
        with_bound.back().second = seconds_text(bound);
        const std::uint64_t below = times.count_below_power(power);
        RMEM_CHECK(before <= below && below <= times.count());
        line("_bucket", with_bound, fmt::format("{}", before = below));
    }
    const std::string count = fmt::format("{}", times.count());
    with_bound.back().second = "+Inf";
    line("_bucket", with_bound, count);
    line("_sum", labels, seconds_text(times.sum()));
    line("_count", labels, count);
}

}  // namespace tools
