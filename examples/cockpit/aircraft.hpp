// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A light aircraft as a point mass: three degrees of freedom, no wind, a flat earth.
///
/// The pilot commands thrust, load factor and bank; the aircraft follows at once, as far as the
/// wing can: the lift coefficient ends at the stall. Drag by a parabolic polar, thrust by a
/// propeller's power, air by the standard atmosphere's troposphere. Units: SI, radians.
/// Thread safety: pure functions.

namespace cockpit {

struct Controls {
    double throttle = 0.0;     ///< 0 to 1
    double load_factor = 1.0;  ///< commanded lift over weight
    double bank_rad = 0.0;
};

struct Motion {
    double north_m = 0.0;
    double east_m = 0.0;
    double altitude_m = 500.0;
    double speed_mps = 50.0;
    double path_rad = 0.0;
    double heading_rad = 0.0;
};

/// The forces on the aircraft in a motion under controls.
struct Forces {
    double lift_n = 0.0;
    double drag_n = 0.0;
    double thrust_n = 0.0;
    double lift_coefficient = 0.0;
    double load_factor = 0.0;  ///< of the wing
};

Forces forces(const Motion& motion, const Controls& controls);

/// The speed below which the wing cannot carry `load_factor` times the weight.
double stall_speed(double altitude_m, double load_factor);

/// Where the aircraft is `seconds` later: one step of the classic fourth-order Runge-Kutta method.
Motion fly(const Motion& from, const Controls& controls, double seconds);

}  // namespace cockpit
