// SPDX-License-Identifier: Apache-2.0
#include "tools/munet_report.hpp"

#include <fmt/format.h>

#include "ports/munet/counter_board.hpp"
#include "rmem/error.hpp"
#include "rmem/process.hpp"
#include "tools/output.hpp"

namespace tools {

namespace {

using ports::munet::CounterBoard;

template <class Names>
nlohmann::json counters_of(const rmem::Counters& block, const Names& names) {
    nlohmann::json counters = nlohmann::json::array();
    for (std::size_t i = 0; i < names.size(); ++i) {
        counters.push_back({{"name", names[i].name},
                            {"value", block.get(static_cast<unsigned>(i))},
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

bool has_any(const rmem::Counters& block) {
    for (std::size_t i = 0; i < ports::munet::kCounterNames.size(); ++i) {
        if (block.get(static_cast<unsigned>(i)) != 0) return true;
    }
    return false;
}

}  // namespace

nlohmann::json munet_report(const std::string& name) {
    const auto board = CounterBoard::observe(name);
    if (!board) {
        throw rmem::Error(
            rmem::Errc::no_such_ring,
            fmt::format("no MU-Net daemon has counters at /dev/shm{}; the name is that "
                        "of ring and node, such as default@0",
                        CounterBoard::object_name(name)));
    }
    // relaxed is enough, twice: for people
    const unsigned pid = board->pid.load(std::memory_order_relaxed);
    nlohmann::json report = {
        {"name", name},
        {"pid", pid},
        {"alive", rmem::process_start_time(pid) != 0},
        {"active", board->active.load(std::memory_order_relaxed)},
        {"counters", counters_of(board->node, ports::munet::kNodeCounterNames)},
        {"endpoints", nlohmann::json::array()}};
    for (std::size_t i = 0; i < board->endpoints.size(); ++i) {
        if (!has_any(board->endpoints[i])) continue;
        report["endpoints"].push_back(
            {{"number", i},
             {"counters", counters_of(board->endpoints[i], ports::munet::kCounterNames)}});
    }
    return report;
}

std::string munet_report_text(const nlohmann::json& report) {
    std::string text = fmt::format(
        "MU-Net daemon {}: process {}{}, {} endpoints\n",
        printable(report["name"].get<std::string>()), report["pid"].get<unsigned>(),
        report["alive"].get<bool>() ? "" : " (has ended)", report["active"].get<unsigned>());
    Table table({"of", "counter", ">value", ""});
    add_rows(table, "node", report["counters"]);
    for (const auto& endpoint : report["endpoints"]) {
        add_rows(table, fmt::format("endpoint {}", endpoint["number"].get<unsigned>()),
                 endpoint["counters"]);
    }
    return table.empty() ? text : text + table.text();
}

}  // namespace tools
