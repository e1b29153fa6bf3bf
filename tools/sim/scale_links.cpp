// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/scale_links.hpp"

#include "tools/json.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace tools {

namespace {

using simulator::sizing::Costs;
using simulator::sizing::Figures;
using simulator::sizing::Plan;
using simulator::sizing::Racks;
using simulator::sizing::SizedPoint;

struct CostOption {
    const char* name;
    const char* meaning;
    std::int64_t Costs::*cost;
    unsigned least;
};

constexpr CostOption kCosts[] = {
    {"--call", "ns of a send call with its first datagram", &Costs::call_ns, 0},
    {"--further", "ns of each further one in the same call", &Costs::further_ns, 0},
    {"--receive", "ns for one that comes", &Costs::receive_ns, 1},
    {"--byte", "ps for each byte, on either side", &Costs::byte_ps, 0},
    {"--switch", "ns in the switch", &Costs::switch_ns, 0},
    {"--rate", "Mbit/s of each host's line", &Costs::link_mbit_s, 1},
};
constexpr unsigned kMostCost = 10'000'000;

double us(std::int64_t ns) {
    return static_cast<double>(ns) / 1e3;
}

/// "multicast", "tree of 4 x 32"
std::string way_of(const Plan& plan) {
    if (plan.racks == Racks::none) return name_of(plan.carrier);
    return fmt::format("{} of {} x {}", name_of(plan.racks), plan.rack_count(), plan.rack_nodes);
}

std::string optional_text(bool is_there, double value) {
    return is_there ? fmt::format("{:.1f}", value) : "-";
}

double mib(const SizedPoint& point) {
    return static_cast<double>(point.memory_bytes.value_or(0)) / (1 << 20);
}
double join_ms(const SizedPoint& point) {
    return static_cast<double>(point.join_ns.value_or(0)) / 1e6;
}

std::string table_of(const std::vector<SizedPoint>& points) {
    Table table({">nodes", "way", "by", ">p50", ">p99", ">last", ">sends", ">sender", ">node",
                 ">writes/s", ">datagrams", ">resent", ">MiB", ">join ms"});
    for (const SizedPoint& point : points) {
        const Figures& figures = point.figures;
        table.add({std::to_string(point.plan.nodes), way_of(point.plan),
                   point.was_run ? "cores" : "model", fmt::format("{:.1f}", us(figures.p50_ns)),
                   fmt::format("{:.1f}", us(figures.p99_ns)),
                   fmt::format("{:.1f}", us(figures.last_ns)), fmt::format("{:.0f}", figures.sends),
                   fmt::format("{:.1f}", us(figures.sender_ns)),
                   fmt::format("{:.1f}", us(figures.node_ns)),
                   fmt::format("{:.0f}", figures.most_writes_a_second()),
                   fmt::format("{:.1f}", figures.datagrams), fmt::format("{:.2f}", figures.resent),
                   optional_text(point.memory_bytes.has_value(), mib(point)),
                   optional_text(point.join_ns.has_value(), join_ms(point))});
    }
    return "times in us\n" + table.text();
}

/// A block for each way, which gnuplot finds by its number.
std::string data_of(const std::vector<SizedPoint>& points) {
    std::string text =
        "# nodes | rack nodes, 0: none | 1: by cores | p50 | p99 | last | sends | sender | node "
        "(us) | datagrams | resent | MiB | join ms (-: there is none)\n";
    const Plan* before = nullptr;
    for (const SizedPoint& point : points) {
        const Plan& plan = point.plan;
        const Figures& figures = point.figures;
        if (before != nullptr && (before->carrier != plan.carrier || before->racks != plan.racks)) {
            text += "\n\n";
        }
        before = &plan;
        text += fmt::format(
            "{} {} {} {:.3f} {:.3f} {:.3f} {:.0f} {:.3f} {:.3f} {:.1f} {:.2f} {} {}\n", plan.nodes,
            plan.racks == Racks::none ? 0 : plan.rack_nodes, point.was_run ? 1 : 0,
            us(figures.p50_ns), us(figures.p99_ns), us(figures.last_ns), figures.sends,
            us(figures.sender_ns), us(figures.node_ns), figures.datagrams, figures.resent,
            optional_text(point.memory_bytes.has_value(), mib(point)),
            optional_text(point.join_ns.has_value(), join_ms(point)));
    }
    return text;
}

nlohmann::json json_of(const SizedPoint& point) {
    const Figures& figures = point.figures;
    nlohmann::json json = {{"nodes", point.plan.nodes},
                           {"carrier", name_of(point.plan.carrier)},
                           {"racks", name_of(point.plan.racks)},
                           {"by", point.was_run ? "cores" : "model"},
                           {"p50_ns", figures.p50_ns},
                           {"p99_ns", figures.p99_ns},
                           {"last_ns", figures.last_ns},
                           {"sends", figures.sends},
                           {"sender_ns", figures.sender_ns},
                           {"node_ns", figures.node_ns},
                           {"most_writes_per_s", figures.most_writes_a_second()},
                           {"datagrams", figures.datagrams},
                           {"resent", figures.resent},
                           {"memory_bytes", nullptr},
                           {"join_ns", nullptr}};
    if (point.plan.racks != Racks::none) json["rack_nodes"] = point.plan.rack_nodes;
    if (point.memory_bytes) json["memory_bytes"] = *point.memory_bytes;
    if (point.join_ns) json["join_ns"] = *point.join_ns;
    return json;
}

nlohmann::json json_of(const simulator::sizing::Task& task, const std::vector<SizedPoint>& points) {
    nlohmann::json costs;
    const Costs& of = task.costs;
    costs = {{"call_ns", of.call_ns},       {"further_ns", of.further_ns},
             {"receive_ns", of.receive_ns}, {"byte_ps", of.byte_ps},
             {"switch_ns", of.switch_ns},   {"link_mbit_s", of.link_mbit_s}};
    nlohmann::json all = nlohmann::json::array();
    for (const SizedPoint& point : points) all.push_back(json_of(point));
    return {{"link", task.is_fabric ? "fabric" : "udp"},
            {"write_bytes", task.load.write_bytes},
            {"lost_ppm", task.load.lost_ppm},
            {"costs", costs},
            {"points", all}};
}

}  // namespace

void ScaleLinks::add_options(cli::App& command) {
    const auto note = [this](const char* name, cli::Option* option) {
        options_.emplace_back(name, option);
    };
    note("--bytes", command.add_option("--bytes", write_bytes_, "Of a write (udp, fabric)")
                        ->check(cli::range(4U, 1200U))
                        ->capture_default_str());
    note("--loss", command.add_option("--loss", loss_percent_, "Percent of the datagrams (udp)")
                       ->check(cli::range(0.0, 20.0))
                       ->capture_default_str());
    note("--rack", command.add_option("--rack", rack_nodes_, "Nodes of a rack (udp, fabric)")
                       ->check(cli::range(2U, 256U))
                       ->capture_default_str());
    note("--cores",
         command.add_option("--cores", most_run_, "Nodes of the largest ring that is run (udp)")
             ->check(cli::range(2U, 256U))
             ->capture_default_str());
    given_.reserve(std::size(kCosts));  // the options point into it
    for (const CostOption& cost : kCosts) {
        Given& given = given_.emplace_back(Given{cost.name, cost.cost});
        given.option = command.add_option(cost.name, given.value, cost.meaning)
                           ->check(cli::range(cost.least, kMostCost))
                           ->group("Costs, in place of the link's");
        note(cost.name, given.option);
    }
}

void ScaleLinks::refuse_options() const {
    for (const auto& [name, option] : options_) {
        if (option->count() != 0) cli::refuse(name, "goes with --link udp or --link fabric");
    }
}

simulator::sizing::Task ScaleLinks::task(bool is_fabric, unsigned most_nodes) const {
    if (most_nodes < simulator::sizing::kLeastSized) {
        cli::refuse("--most",
                    fmt::format("begins at {} nodes on this link", simulator::sizing::kLeastSized));
    }
    if (write_bytes_ % 4 != 0) cli::refuse("--bytes", "must be a multiple of 4: words travel");
    simulator::sizing::Task task;
    task.is_fabric = is_fabric;
    task.most_nodes = most_nodes;
    task.rack_nodes = rack_nodes_;
    task.most_run = most_run_;
    task.load.write_bytes = write_bytes_;
    task.load.lost_ppm = static_cast<std::uint32_t>(std::lround(loss_percent_ * 1e4));
    task.costs = is_fabric ? simulator::sizing::fabric_costs : simulator::sizing::udp_costs;
    for (const Given& given : given_) {
        if (given.option->count() != 0) task.costs.*given.cost = given.value;
    }
    return task;
}

void ScaleLinks::run(bool is_fabric, unsigned most_nodes, Form form) const {
    const simulator::sizing::Task task = this->task(is_fabric, most_nodes);
    const std::vector<SizedPoint> points = simulator::sizing::measure(task);
    switch (form) {
        case Form::json: return show_json(json_of(task, points));
        case Form::data: return show(data_of(points));
        case Form::table: return show(table_of(points));
    }
}

}  // namespace tools
