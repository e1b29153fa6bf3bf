// SPDX-License-Identifier: Apache-2.0
// `rmem sim scale`: multicast and barrier on more and more nodes of the ring's wire model.

#include "simulator/paper/scale.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/sim/sim.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace tools {

namespace {

constexpr const char* kSimScaleExamples = R"(
Columns: nodes and how they are arranged (8x8: 8 rings of 8, joined by a ring of
bridges), ranks of the billboard; in microseconds a bbp_mcast of 4 bytes to all ranks, a bbp_barrier
as in the paper, one word from a node to all others, and a barrier of all nodes by a word each.

Examples:
  rmem sim scale                        up to 64 nodes, in some seconds
  rmem sim scale --most 4096            all that fits, in some minutes
  rmem sim scale --most 256 --data      as a data file

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct ScaleOptions {
    unsigned most_nodes = 64;
    bool data = false;
    bool json = false;
};

std::string us_of(std::int64_t ps) {
    const std::int64_t ns = (ps + 500) / 1000;
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::vector<std::string> times_of(const simulator::ScalePoint& point) {
    return {us_of(point.multicast_ps), us_of(point.barrier_ps), us_of(point.word_ps),
            us_of(point.word_barrier_ps)};
}

nlohmann::json point_json(const simulator::ScalePoint& point) {
    return {{"nodes", point.place.nodes()},
            {"rings", point.place.rings},
            {"ranks", point.place.ranks},
            {"multicast_ps", point.multicast_ps},
            {"barrier_ps", point.barrier_ps},
            {"word_ps", point.word_ps},
            {"word_barrier_ps", point.word_barrier_ps}};
}

/// Blank lines divide one ring from hierarchies, so that gnuplot finds them as blocks.
std::string points_data(const std::vector<simulator::ScalePoint>& points) {
    std::string text = "# nodes | rings | ranks | multicast | barrier | word | word barrier (us)\n";
    bool hierarchies = false;
    for (const simulator::ScalePoint& point : points) {
        if (point.place.rings > 1 && !hierarchies) text += "\n\n";
        hierarchies = point.place.rings > 1;
        text += fmt::format("{} {} {}", point.place.nodes(), point.place.rings, point.place.ranks);
        for (const std::string& time : times_of(point)) text += " " + time;
        text += '\n';
    }
    return text;
}

std::string points_table(const std::vector<simulator::ScalePoint>& points) {
    Table table({">nodes", ">rings", ">ranks", ">multicast", ">barrier", ">word", ">word barrier"});
    for (const simulator::ScalePoint& point : points) {
        const simulator::Place& place = point.place;
        std::vector<std::string> cells = {
            std::to_string(place.nodes()),
            place.rings == 1 ? "1" : fmt::format("{0}x{1}", place.rings, place.nodes_per_ring),
            std::to_string(place.ranks)};
        for (const std::string& time : times_of(point)) cells.push_back(time);
        table.add(cells);
    }
    return table.text();
}

void scale(const ScaleOptions& options) {
    std::vector<simulator::ScalePoint> points;
    for (const simulator::Place& place : simulator::places_to_measure(options.most_nodes)) {
        points.push_back(simulator::measure(place));
    }
    if (options.json) {
        nlohmann::json all = nlohmann::json::array();
        for (const simulator::ScalePoint& point : points) all.push_back(point_json(point));
        return show_json(all);
    }
    if (options.data) return show(points_data(points));
    show("in us\n" + points_table(points));
}

}  // namespace

void add_sim_scale(cli::App& sim) {
    auto options = std::make_shared<ScaleOptions>();
    cli::App* command = sim.add_subcommand("scale", "Time what more and more nodes cost");
    command->footer(kSimScaleExamples);
    command->add_option("--most", options->most_nodes, "Nodes of the largest place to measure")
        ->check(cli::range(2, 4096))
        ->capture_default_str();
    command->add_flag("--data", options->data, "Print a data file");
    command->add_flag("--json", options->json, "For programs");
    command->callback([options] { scale(*options); });
}

}  // namespace tools
