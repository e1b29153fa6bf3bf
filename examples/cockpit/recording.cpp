// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <sstream>
#include <stdexcept>

namespace cockpit {
namespace {

/// The fields of each line that is no comment, with its number; `columns` of them or an error.
struct Line {
    std::size_t number = 0;
    std::vector<std::string> fields;
};

[[noreturn]] void complain(const std::string& file, std::size_t line, const std::string& what) {
    throw std::runtime_error(fmt::format("{}:{}: {}", file, line, what));
}

std::vector<Line> read_csv(const std::string& file, std::size_t columns) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error(fmt::format("cannot read {}", file));
    std::vector<Line> lines;
    std::size_t number = 0;
    for (std::string text; std::getline(in, text);) {
        ++number;
        if (text.empty() || text.front() == '#') continue;
        Line line{number, {}};
        std::istringstream rest(text);
        for (std::string field; std::getline(rest, field, ',');) line.fields.push_back(field);
        if (line.fields.size() != columns) {
            complain(file, number, fmt::format("{} fields, not {}", line.fields.size(), columns));
        }
        lines.push_back(line);
    }
    return lines;
}

double number(const std::string& file, const Line& line, std::size_t field) {
    const std::string& text = line.fields[field];
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || !std::isfinite(value)) {
        complain(file, line.number, fmt::format("'{}' is not a number", text));
    }
    return value;
}

double mix(double a, double b, double share) {
    return a + (b - a) * share;
}

}  // namespace

Recording::Recording(const std::string& file) {
    constexpr double kRadians = std::numbers::pi / 180.0;
    for (const Line& line : read_csv(file, 4)) {
        const double time_s = number(file, line, 0);
        const bool in_order = times_s_.empty() ? time_s == 0.0 : time_s > times_s_.back();
        if (!in_order) complain(file, line.number, "times begin at 0 and grow");
        times_s_.push_back(time_s);
        controls_.push_back(
            {number(file, line, 1), number(file, line, 2), number(file, line, 3) * kRadians});
    }
    if (times_s_.size() < 2) throw std::runtime_error(fmt::format("{} holds no flight", file));
}

Controls Recording::at(double time_s) const {
    const auto after = std::upper_bound(times_s_.begin(), times_s_.end(), time_s);
    if (after == times_s_.begin()) return controls_.front();
    if (after == times_s_.end()) return controls_.back();
    const auto i = static_cast<std::size_t>(after - times_s_.begin());
    const double share = (time_s - times_s_[i - 1]) / (times_s_[i] - times_s_[i - 1]);
    const Controls& a = controls_[i - 1];
    const Controls& b = controls_[i];
    return {mix(a.throttle, b.throttle, share), mix(a.load_factor, b.load_factor, share),
            mix(a.bank_rad, b.bank_rad, share)};
}

std::vector<Expectation> read_expectations(const std::string& file) {
    std::vector<Expectation> expectations;
    for (const Line& line : read_csv(file, 3)) {
        expectations.push_back({line.fields[0], number(file, line, 1), number(file, line, 2)});
    }
    return expectations;
}

}  // namespace cockpit
