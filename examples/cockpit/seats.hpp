// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The programs of the cockpit's processes, from boarding to the end of the flight.
/// Results are exit codes. Errors: rmem::Error, std::runtime_error.

#include "rmem/node.hpp"

#include <string>

namespace cockpit {

struct Options {
    std::string controls;      ///< the recording that the aircraft flies
    std::string expect;        ///< file with the expected end, if any
    std::string log;           ///< file for the logger's frames, if any
    double speed = 1.0;        ///< simulated seconds per second
    bool fast = false;         ///< as fast as all seats keep up
    double panel_every = 5.0;  ///< simulated seconds between the panel's lines
};

/// Integrates the flight and writes each frame; 1 when the end is not the expected one.
int fly_aircraft(rmem::Node& node, const Options& options);
/// Writes every frame that it sees to a file, and says how many it did not see.
int log_flight(rmem::Node& node, const Options& options);
/// Shows the instruments and the monitor's alarms.
int show_panel(rmem::Node& node, const Options& options);
/// Watches the limits of the aircraft and raises alarms.
int monitor_limits(rmem::Node& node, const Options& options);

}  // namespace cockpit
