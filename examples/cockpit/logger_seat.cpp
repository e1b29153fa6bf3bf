// SPDX-License-Identifier: Apache-2.0
#include "frames.hpp"
#include "seats.hpp"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace cockpit {

int log_flight(rmem::Node& node, const Options& options) {
    std::ofstream out;
    if (!options.log.empty()) {
        out.open(options.log);
        out << "frame,time_s,north_m,east_m,altitude_m,speed_mps,path_rad,heading_rad,bank_rad\n";
    }

    FrameReader frames(node);
    while (const auto frame = frames.next()) {
        if (out.is_open()) {
            const FlightState& s = frame->state;
            out << fmt::format("{},{:.2f},{:.3f},{:.3f},{:.3f},{:.4f},{:.6f},{:.6f},{:.6f}\n",
                               frame->number, s.time_s, s.north_m, s.east_m, s.altitude_m,
                               s.speed_mps, s.path_rad, s.heading_rad, s.bank_rad);
        }
        frames.release(*frame);
    }

    if (!options.log.empty() && !out.flush()) {
        throw std::runtime_error(fmt::format("cannot write {}", options.log));
    }
    fmt::print("logger: {} of {} frames seen, {} missed, {} read twice or more\n", frames.seen(),
               node.load(kFrames), frames.missed(), frames.torn());
    return 0;
}

}  // namespace cockpit
