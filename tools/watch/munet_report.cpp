// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/munet_report.hpp"

#include "ports/munet/counter_board.hpp"
#include "rmem/base/process.hpp"
#include "rmem/error.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <span>

namespace tools {

namespace {

using ports::munet::CounterBoard;

nlohmann::json counters_of(const CounterValues& values, std::span<const rmem::CounterName> names) {
    nlohmann::json counters = nlohmann::json::array();
    for (std::size_t i = 0; i < names.size(); ++i) {
        counters.push_back({{"name", names[i].name},
                            {"value", values[i]},
                            {"unit", names[i].unit},
                            {"meaning", names[i].meaning}});
    }
    return counters;
}

void add_rows(Table& table, const std::string& whose, const nlohmann::json& counters) {
    for (const auto& counter : counters) {
        if (counter["value"].get<std::uint64_t>() == 0) continue;
        table.add({whose, counter["name"].get<std::string>(),
                   std::to_string(counter["value"].get<std::uint64_t>()),
                   counter["meaning"].get<std::string>()});
    }
}

}  // namespace

std::string board_name(const std::string& ring, unsigned node) {
    return fmt::format("{}@{}", ring, node);
}

std::optional<MunetSample> munet_sample(const std::string& board_name) {
    const auto board = CounterBoard::observe(board_name);
    if (!board) return std::nullopt;
    MunetSample sample;
    // relaxed is enough, twice: for people
    sample.pid = board->pid.load(std::memory_order_relaxed);
    sample.active = board->active.load(std::memory_order_relaxed);
    sample.runs = rmem::process_start_time(sample.pid) != 0;
    sample.node = values_of(board->node, ports::munet::kNodeCounterNames.size());
    for (unsigned i = 0; i < board->endpoints.size(); ++i) {
        auto values = values_of(board->endpoints[i], ports::munet::kCounterNames.size());
        if (any_of(values)) sample.endpoints.emplace(i, std::move(values));
    }
    return sample;
}

std::optional<MunetSample> munet_sample(const std::string& ring, unsigned node, bool had_daemon) {
    auto sample = munet_sample(board_name(ring, node));
    if (sample && !sample->runs && !had_daemon) sample.reset();
    return sample;
}

nlohmann::json munet_json(const std::string& board, const MunetSample& sample) {
    nlohmann::json report = {
        {"name", board},
        {"pid", sample.pid},
        {"alive", sample.runs},
        {"active", sample.active},
        {"counters", counters_of(sample.node, ports::munet::kNodeCounterNames)},
        {"endpoints", nlohmann::json::array()}};
    for (const auto& [number, values] : sample.endpoints) {
        report["endpoints"].push_back(
            {{"number", number}, {"counters", counters_of(values, ports::munet::kCounterNames)}});
    }
    return report;
}

nlohmann::json munet_report(const std::string& board) {
    if (const auto sample = munet_sample(board)) return munet_json(board, *sample);
    throw rmem::Error(rmem::Errc::no_such_ring,
                      fmt::format("no MU-Net daemon has counters at /dev/shm{}; the name is that "
                                  "of ring and node, such as default@0",
                                  CounterBoard::object_name(board)));
}

std::string munet_line(const nlohmann::json& report) {
    return fmt::format("MU-Net daemon {}: process {}{}, {} endpoints",
                       printable(report["name"].get<std::string>()), report["pid"].get<unsigned>(),
                       report["alive"].get<bool>() ? "" : " (has ended)",
                       report["active"].get<unsigned>());
}

std::string munet_report_text(const nlohmann::json& report) {
    const std::string text = munet_line(report) + "\n";
    Table table({"of", "counter", ">value", "meaning"});
    add_rows(table, "node", report["counters"]);
    for (const auto& endpoint : report["endpoints"]) {
        add_rows(table, fmt::format("endpoint {}", endpoint["number"].get<unsigned>()),
                 endpoint["counters"]);
    }
    return table.empty() ? text : text + table.text();
}

}  // namespace tools
