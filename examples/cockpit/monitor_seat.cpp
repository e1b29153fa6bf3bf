// SPDX-License-Identifier: Apache-2.0
#include "aircraft.hpp"
#include "frames.hpp"
#include "seats.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace cockpit {
namespace {

constexpr double kSteepRad = 40.0 * std::numbers::pi / 180.0;
constexpr double kStallMargin = 1.2;
constexpr double kHighMps = 70.0;
constexpr double kDescentMps = 5.0;

std::uint32_t alarms_of(const FlightState& s) {
    const double speed_mps = wide(s.speed_mps);
    const double climb_mps = speed_mps * std::sin(wide(s.path_rad));
    std::uint32_t alarms = 0;
    if (std::abs(wide(s.bank_rad)) > kSteepRad) alarms |= steep_bank;
    if (speed_mps < kStallMargin * stall_speed(wide(s.altitude_m), wide(s.load_factor)))
        alarms |= low_speed;
    if (speed_mps > kHighMps) alarms |= high_speed;
    if (climb_mps < -kDescentMps) alarms |= fast_descent;
    return alarms;
}

}  // namespace

int monitor_limits(rmem::Node& node, const Options&) {
    FrameReader frames(node);
    std::uint32_t raised = 0;
    std::uint32_t changes = 0;
    while (const auto frame = frames.next()) {
        const std::uint32_t alarms = alarms_of(frame->state);
        if (alarms != raised) {
            put(node, place(monitor, SeatWord::alarms), alarms);
            raised = alarms;
            ++changes;
        }
        frames.release(*frame);
    }
    fmt::print("monitor: alarms changed {} times\n", changes);
    return 0;
}

}  // namespace cockpit
