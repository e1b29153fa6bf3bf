// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/config.hpp"
#include "tools/measure/bench.hpp"
#include "tools/measure/samples.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tools {

namespace {

// A wire is a thousand times slower than a bank that all share, and many ranks share its room.
constexpr std::size_t kMaxOnDirect = std::size_t{1} << 20, kMaxElsewhere = std::size_t{1} << 16;
constexpr std::size_t kRoundsElsewhere = 10, kInRoundElsewhere = 32;
constexpr std::size_t kMaxSizes = 50;

SizesPlan plan_of(const GroupOptions& group, const SizesOptions& options) {
    SizesPlan plan;
    const bool is_direct = group.link == "direct";
    plan.rounds = options.rounds;
    if (!is_direct) {
        plan.rounds = std::min(plan.rounds, kRoundsElsewhere);
        plan.most_in_round = kInRoundElsewhere;
    }
    for (const std::string& size : options.sizes) {
        plan.sizes.push_back(size_option("--sizes", size));
        if (plan.sizes.back() <= kMaxOnDirect) continue;
        throw UsageError(fmt::format("--sizes {} is too large; give at most {}", size,
                                     rmem::size_setting(kMaxOnDirect)));
    }
    if (plan.sizes.size() > kMaxSizes)
        throw UsageError(
            fmt::format("--sizes are {}; give at most {}", plan.sizes.size(), kMaxSizes));
    if (plan.sizes.empty())
        plan.sizes = usual_sizes(is_direct && group.ranks == 2 ? kMaxOnDirect : kMaxElsewhere);
    plan.rhythms = options.rhythms;
    if (plan.rhythms.empty()) plan.rhythms = rhythms_of(group.ranks);
    return plan;
}

/// Which floor a rhythm has, if any.
const char* floor_of(const std::string& rhythm) {
    return rhythm == "pingpong" ? "hop" : rhythm == "stream" ? "memcpy" : nullptr;
}

std::vector<std::string> heading_of(const SizesPlan& plan) {
    std::vector<std::string> heading = {">bytes"};
    for (const std::string& rhythm : plan.rhythms) {
        const char* floor = floor_of(rhythm);
        if (floor != nullptr) heading.push_back(std::string(">") + floor);
        heading.push_back(">" + rhythm);
        if (floor != nullptr) heading.emplace_back(">÷");
    }
    return heading;
}

std::vector<std::string> row_of(const SizesPlan& plan, const Series& series, std::size_t bytes) {
    const auto of = [&](const std::string& what) -> const std::vector<double>& {
        return series.at(fmt::format("{}: {}", bytes, what));
    };
    std::vector<std::string> row = {std::to_string(bytes)};
    for (const std::string& rhythm : plan.rhythms) {
        const char* floor = floor_of(rhythm);
        if (floor != nullptr) row.push_back(number(median(of(floor))));
        row.push_back(number(median(of(rhythm))));
        if (floor != nullptr)
            row.push_back(fmt::format("{:.2f}", median_ratio(of(rhythm), of(floor))));
    }
    return row;
}

std::string sizes_text(const SizesPlan& plan, const Series& series, bool page) {
    Table rows(heading_of(plan));
    for (const std::size_t bytes : plan.sizes) rows.add(row_of(plan, series, bytes));
    return page ? rows.markdown() : rows.text();
}

nlohmann::json json_of(const SizesPlan& plan, const Series& series) {
    nlohmann::json all = nlohmann::json::array();
    for (const std::size_t bytes : plan.sizes) {
        nlohmann::json row = {{"bytes", bytes}};
        const std::string prefix = fmt::format("{}: ", bytes);
        for (const auto& [name, values] : series) {
            if (!name.starts_with(prefix)) continue;
            row[name.substr(prefix.size())] = percentiles_json(values);
        }
        all.push_back(std::move(row));
    }
    return all;
}

}  // namespace

void bench_sizes(const GroupOptions& group, const SizesOptions& options, bool json) {
    const SizesPlan plan = plan_of(group, options);
    Results results;
    measure_sizes(group, plan, results);
    const Series series = results.all();
    if (json) {
        return show_json({{"figure", "sizes"},
                          {"link", group.link},
                          {"layout", group.layout},
                          {"timing", group.timing},
                          {"ranks", group.ranks},
                          {"sizes", json_of(plan, series)}});
    }
    show(fmt::format("\n{}sizes: {} ranks, link {}, layout {}; ns, medians of {} rounds\n{}",
                     options.page ? "## " : "", group.ranks, group.link, group.layout, plan.rounds,
                     options.page ? "\n" : "") +
         sizes_text(plan, series, options.page));
}

}  // namespace tools
