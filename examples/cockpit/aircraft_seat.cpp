// SPDX-License-Identifier: Apache-2.0
#include "aircraft.hpp"
#include "frames.hpp"
#include "recording.hpp"
#include "seats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

namespace cockpit {
namespace {

using Clock = std::chrono::steady_clock;

struct Flight {
    Motion motion;
    double seconds = 0.0;
    double distance_m = 0.0;
    double highest_m = 0.0;
    double steepest_rad = 0.0;
};

FlightState state_of(double time_s, const Motion& m, const Controls& controls) {
    const Forces f = forces(m, controls);
    const auto narrow = [](double value) { return static_cast<float>(value); };
    return {narrow(time_s),        narrow(m.north_m),          narrow(m.east_m),
            narrow(m.altitude_m),  narrow(m.speed_mps),        narrow(m.path_rad),
            narrow(m.heading_rad), narrow(controls.bank_rad),  narrow(controls.throttle),
            narrow(f.load_factor), narrow(f.lift_coefficient), narrow(f.thrust_n)};
}

void advance(Flight& flight, std::uint32_t frame, const Recording& recording) {
    const double time_s = frame * kFrameSeconds;
    // The controls in the frame's middle count for all of it.
    const Controls controls = recording.at(time_s - kFrameSeconds / 2);
    flight.motion = fly(flight.motion, controls, kFrameSeconds);
    flight.seconds = time_s;
    flight.distance_m += flight.motion.speed_mps * kFrameSeconds;
    flight.highest_m = std::max(flight.highest_m, flight.motion.altitude_m);
    flight.steepest_rad = std::max(flight.steepest_rad, std::abs(controls.bank_rad));
}

Flight fly_recording(rmem::Node& node, const Options& options, const Recording& recording) {
    const auto frames =
        static_cast<std::uint32_t>(std::lround(recording.seconds() / kFrameSeconds));
    FrameWriter writer(node, frames);
    const auto start = Clock::now();
    Flight flight;
    for (std::uint32_t frame = 1; frame <= frames; ++frame) {
        advance(flight, frame, recording);
        writer.write(
            {frame, state_of(flight.seconds, flight.motion, recording.at(flight.seconds))});
        if (options.fast) {
            writer.wait_for_readers(frame);
        } else {
            const std::chrono::duration<double> due(flight.seconds / options.speed);
            std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(due));
        }
    }
    writer.end();
    writer.wait_for_readers(frames);
    return flight;
}

double value_of(const Motion& m, const std::string& name) {
    if (name == "north_m") return m.north_m;
    if (name == "east_m") return m.east_m;
    if (name == "altitude_m") return m.altitude_m;
    if (name == "speed_mps") return m.speed_mps;
    if (name == "path_deg") return m.path_rad * kDegrees;
    if (name == "heading_deg") return m.heading_rad * kDegrees;
    throw std::runtime_error(fmt::format("the aircraft has no value '{}'", name));
}

bool is_as_expected(const Motion& end, const std::vector<Expectation>& expectations) {
    bool all = true;
    for (const auto& [name, expected, tolerance] : expectations) {
        const double value = value_of(end, name);
        if (std::abs(value - expected) <= tolerance) continue;
        fmt::print("aircraft: {} is {:.4f}, expected {} +- {}\n", name, value, expected, tolerance);
        all = false;
    }
    return all;
}

void summarise(const Flight& flight) {
    const Motion& m = flight.motion;
    fmt::print("aircraft: {:.0f} s flown, {:.0f} m, up to {:.1f} m high, bank up to {:.0f} deg\n",
               flight.seconds, flight.distance_m, flight.highest_m, flight.steepest_rad * kDegrees);
    fmt::print(
        "aircraft: end at {:.2f} m north, {:.2f} m east, {:.2f} m high, {:.3f} m/s, "
        "path {:.3f} deg, heading {:.3f} deg\n",
        m.north_m, m.east_m, m.altitude_m, m.speed_mps, m.path_rad * kDegrees,
        m.heading_rad * kDegrees);
}

}  // namespace

int fly_aircraft(rmem::Node& node, const Options& options) {
    const Recording recording(options.controls);
    const Flight flight = fly_recording(node, options, recording);
    summarise(flight);
    for (unsigned seat = 1; seat < node.config().nodes; ++seat) {
        fmt::print("aircraft: seat {} missed {} frames\n", seat,
                   node.load(place(seat, SeatWord::missed)));
    }
    if (options.expect.empty()) return 0;
    const bool good = is_as_expected(flight.motion, read_expectations(options.expect));
    fmt::print("aircraft: the end is {}as expected\n", good ? "" : "NOT ");
    return good ? 0 : 1;
}

}  // namespace cockpit
