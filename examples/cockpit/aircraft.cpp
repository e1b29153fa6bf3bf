// SPDX-License-Identifier: Apache-2.0
#include "aircraft.hpp"

#include <algorithm>
#include <cmath>

namespace cockpit {
namespace {

constexpr double kGravity = 9.80665;
constexpr double kMassKg = 1100.0;
constexpr double kWeightN = kMassKg * kGravity;
constexpr double kWingM2 = 16.2;
constexpr double kZeroLiftDrag = 0.031;
constexpr double kInducedDrag = 0.054;  ///< times the lift coefficient squared
constexpr double kLargestLift = 1.55;   ///< lift coefficient at the stall
constexpr double kPropellerW = 96'000.0;
constexpr double kStaticThrustN = 2'900.0;

double air_density(double altitude_m) {
    return 1.225 * std::pow(1.0 - 2.25577e-5 * altitude_m, 4.25588);
}

/// Change per second.
Motion rate(const Motion& m, const Controls& controls) {
    const Forces f = forces(m, controls);
    Motion r;
    r.north_m = m.speed_mps * std::cos(m.path_rad) * std::cos(m.heading_rad);
    r.east_m = m.speed_mps * std::cos(m.path_rad) * std::sin(m.heading_rad);
    r.altitude_m = m.speed_mps * std::sin(m.path_rad);
    r.speed_mps = (f.thrust_n - f.drag_n) / kMassKg - kGravity * std::sin(m.path_rad);
    const double lift_per_momentum = f.lift_n / (kMassKg * m.speed_mps);
    r.path_rad = lift_per_momentum * std::cos(controls.bank_rad) -
                 kGravity * std::cos(m.path_rad) / m.speed_mps;
    r.heading_rad = lift_per_momentum * std::sin(controls.bank_rad) / std::cos(m.path_rad);
    return r;
}

Motion moved(const Motion& from, const Motion& by, double seconds) {
    return {from.north_m + seconds * by.north_m,       from.east_m + seconds * by.east_m,
            from.altitude_m + seconds * by.altitude_m, from.speed_mps + seconds * by.speed_mps,
            from.path_rad + seconds * by.path_rad,     from.heading_rad + seconds * by.heading_rad};
}

}  // namespace

Forces forces(const Motion& motion, const Controls& controls) {
    const double density = air_density(motion.altitude_m);
    const double push = 0.5 * density * motion.speed_mps * motion.speed_mps * kWingM2;
    Forces f;
    f.lift_coefficient =
        std::clamp(controls.load_factor * kWeightN / push, -kLargestLift, kLargestLift);
    f.lift_n = push * f.lift_coefficient;
    f.drag_n = push * (kZeroLiftDrag + kInducedDrag * f.lift_coefficient * f.lift_coefficient);
    f.thrust_n = controls.throttle * std::min(kStaticThrustN, kPropellerW / motion.speed_mps) *
                 density / air_density(0.0);
    f.load_factor = f.lift_n / kWeightN;
    return f;
}

double stall_speed(double altitude_m, double load_factor) {
    return std::sqrt(2.0 * std::max(load_factor, 0.0) * kWeightN /
                     (air_density(altitude_m) * kWingM2 * kLargestLift));
}

Motion fly(const Motion& from, const Controls& controls, double seconds) {
    const Motion a = rate(from, controls);
    const Motion b = rate(moved(from, a, seconds / 2), controls);
    const Motion c = rate(moved(from, b, seconds / 2), controls);
    const Motion d = rate(moved(from, c, seconds), controls);
    Motion to = moved(from, a, seconds / 6);
    to = moved(to, b, seconds / 3);
    to = moved(to, c, seconds / 3);
    return moved(to, d, seconds / 6);
}

}  // namespace cockpit
