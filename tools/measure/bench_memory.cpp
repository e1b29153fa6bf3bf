// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/bench.hpp"
#include "tools/measure/samples.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

namespace tools {

namespace {

struct Setting {
    std::string link, timing;
};

std::vector<Setting> settings_of(const GroupOptions& group, const MemoryOptions& options) {
    if (!options.all_links) return {{group.link, group.timing}};
    return {{"direct", ""},
            {"ring", "none"},
            {"ring", "scramnet-burst"},
            {"ring", "gt200"},
            {"udp", ""}};
}

std::string quantity_of(const std::string& name) {
    return name.substr(0, name.find(':'));
}

bool is_floor(const std::string& name) {
    return name.find(": floor, ") != std::string::npos;
}

/// The floor of a case: of its own size where there is one, else the last of its quantity. Null:
/// none.
const std::vector<double>* floor_of(const Series& series, const std::string& name) {
    const std::string quantity = quantity_of(name);
    const std::string own = quantity + ": floor, memcpy of " + name.substr(quantity.size() + 2);
    if (const auto it = series.find(own); it != series.end()) return &it->second;
    const std::vector<double>* found = nullptr;
    for (const char* floor : {"a line", "a futex", "a datagram", "the wire", "a plain store"}) {
        const auto it = series.find(fmt::format("{}: floor, {}", quantity, floor));
        if (it != series.end()) found = &it->second;
    }
    return found;
}

std::vector<std::string> row_of(const Series& series, const std::string& name) {
    const Percentiles p(series.at(name));
    const auto* floor = is_floor(name) ? nullptr : floor_of(series, name);
    const double floor_ns = floor != nullptr ? median(*floor) : 0;
    return {name,          std::to_string(p.samples),
            number(p.p50), number(p.p90),
            number(p.p99), number(p.p999),
            number(p.max), floor_ns > 0 ? fmt::format("{:.2f}", p.p50 / floor_ns) : ""};
}

std::string text_of(const Series& series, const std::vector<std::string>& names, bool page) {
    Table rows({"case", ">samples", ">p50 ns", ">p90", ">p99", ">p99.9", ">max", ">÷ floor"});
    for (const std::string& name : names) rows.add(row_of(series, name));
    return page ? rows.markdown() : rows.text();
}

nlohmann::json series_json(const Series& series) {
    nlohmann::json all = nlohmann::json::object();
    for (const auto& [name, values] : series) all[name] = percentiles_json(values);
    return all;
}

}  // namespace

void bench_memory(const GroupOptions& group, const MemoryOptions& options, bool json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Setting& setting : settings_of(group, options)) {
        GroupOptions one = group;
        one.link = setting.link;
        one.timing = setting.timing;
        Results results;
        measure_memory(one, options.plan, results);
        const Series series = results.all();
        const std::string named =
            setting.timing.empty() ? setting.link : setting.link + ", " + setting.timing;
        if (json) {
            all.push_back({{"figure", "memory"},
                           {"link", setting.link},
                           {"timing", setting.timing},
                           {"nodes", one.ranks},
                           {"busy", options.plan.busy},
                           {"series", series_json(series)}});
            continue;
        }
        show(fmt::format("\n{}{}: {} nodes, {} busy processes; ns\n\n", options.page ? "## " : "",
                         named, one.ranks, options.plan.busy) +
             text_of(series, results.names(), options.page));
    }
    if (json) show_json(options.all_links ? all : all.front());
}

}  // namespace tools
