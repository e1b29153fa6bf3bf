// SPDX-License-Identifier: Apache-2.0
#include "frames.hpp"
#include "seats.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <string>

namespace cockpit {
namespace {

constexpr double kRedrawSeconds = 0.1;  ///< of a terminal

std::string alarm_names(std::uint32_t alarms) {
    std::string names;
    if (alarms & steep_bank) names += " BANK";
    if (alarms & low_speed) names += " LOW SPEED";
    if (alarms & high_speed) names += " HIGH SPEED";
    if (alarms & fast_descent) names += " DESCENT";
    return names;
}

std::string instruments(const FlightState& s, std::uint32_t alarms) {
    const long heading_deg = (std::lround(wide(s.heading_rad) * kDegrees) % 360 + 360) % 360;
    const double climb_mps = wide(s.speed_mps) * std::sin(wide(s.path_rad));
    const double shown_climb_mps = std::round(climb_mps * 10.0) / 10.0 + 0.0;  // no -0.0
    return fmt::format(
        "{:6.2f} s  ALT {:5.0f} m  SPD {:4.1f} m/s  V/S {:+4.1f} m/s  HDG {:03}  BANK {:+3.0f}  "
        "G {:4.2f}  THR {:3.0f} %{}",
        s.time_s, s.altitude_m, s.speed_mps, shown_climb_mps, heading_deg,
        wide(s.bank_rad) * kDegrees, s.load_factor, 100.0 * wide(s.throttle), alarm_names(alarms));
}

/// Redraws one line of a terminal; elsewhere writes a line each few simulated seconds.
class Display {
public:
    explicit Display(double every_s)
        : terminal_(::isatty(STDOUT_FILENO) != 0), every_s_(terminal_ ? kRedrawSeconds : every_s) {}

    void show(const FlightState& state, std::uint32_t alarms) {
        const double time_s = wide(state.time_s);
        if (time_s < next_s_ && alarms == alarms_) return;
        next_s_ = every_s_ * (std::floor(time_s / every_s_) + 1.0);
        alarms_ = alarms;
        fmt::print("{}{}{}", terminal_ ? "\r\033[K" : "", instruments(state, alarms),
                   terminal_ ? "" : "\n");
        std::fflush(stdout);
    }
    void end() const {
        if (terminal_) fmt::print("\n");
    }

private:
    bool terminal_;
    double every_s_;
    double next_s_ = 0.0;
    std::uint32_t alarms_ = 0;
};

}  // namespace

int show_panel(rmem::Node& node, const Options& options) {
    FrameReader frames(node);
    node.watch(place(monitor, SeatWord::alarms), sizeof(std::uint32_t));
    Display display(options.panel_every);
    while (const auto frame = frames.next()) {
        display.show(frame->state, node.load(place(monitor, SeatWord::alarms)));
        frames.release(*frame);
    }
    display.end();
    return 0;
}

}  // namespace cockpit
