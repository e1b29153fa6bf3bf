// SPDX-License-Identifier: Apache-2.0
/// A flight simulator's shape: processes that share an aircraft's state in reflective memory.
/// See README.md.

#include "cockpit_map.hpp"
#include "seats.hpp"

#include "rmem/node.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <stdexcept>

namespace {

int take_seat(const cockpit::Options& options) {
    static constexpr std::array kSeats = {cockpit::fly_aircraft, cockpit::log_flight,
                                          cockpit::show_panel, cockpit::monitor_limits};
    static_assert(kSeats.size() == cockpit::seats);
    auto node = rmem::Node::open();
    if (node.config().nodes > cockpit::seats) {
        throw std::runtime_error(
            fmt::format("the cockpit has {} seats, not {}", kSeats.size(), node.config().nodes));
    }
    return kSeats[node.id()](node, options);
}

void add_options(CLI::App& app, cockpit::Options& options) {
    app.add_option("controls", options.controls, "The recording to fly (CSV)")
        ->required()
        ->check(CLI::ExistingFile);
    app.add_option("--expect", options.expect, "Compare the end with this file (CSV)")
        ->check(CLI::ExistingFile);
    app.add_option("--log", options.log, "The logger writes the frames to this file (CSV)");
    auto* speed = app.add_option("--speed", options.speed, "Simulated seconds per second")
                      ->check(CLI::Range(0.1, 10'000.0))
                      ->capture_default_str();
    app.add_flag("--fast", options.fast, "As fast as every seat works through each frame")
        ->excludes(speed);
    app.add_option("--panel-every", options.panel_every,
                   "Simulated seconds between the panel's lines, when not on a terminal")
        ->check(CLI::Range(0.01, 3600.0))
        ->capture_default_str();
    app.footer(
        "Node 0 is the aircraft, 1 the logger, 2 the panel, 3 the monitor; later ones may be left "
        "out.\nExample: rmem run -n 4 -- cockpit flight.csv");
}

}  // namespace

int main(int argc, char** argv) {
    cockpit::Options options;
    CLI::App app("Flies a recording; logger, panel and monitor follow in reflective memory.",
                 "cockpit");
    add_options(app, options);
    CLI11_PARSE(app, argc, argv);
    try {
        return take_seat(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "cockpit: {}\n", error.what());
        return 1;
    }
}
