// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Every number of the paper and of the ring's hardware, beside what the simulation says.
///
/// B1 to B21 are the numbers that the paper prints; "ring" rows are from the card's manual. A
/// number that can be read in two ways has a row for each. A claim that needs the curve of a
/// network of which the paper prints nothing is listed as not modelled: no constant replaces it.
///
/// Units: as the row says; the values are for people, the simulation itself is in whole
/// nanoseconds.
/// Errors: simulator/paper/worlds.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace simulator {

enum class Standing : std::uint8_t {
    given = 0,    ///< put into the model as it is
    fitted,       ///< a constant was chosen so that it comes out (simulator/paper/calibration.hpp)
    predicted,    ///< follows from the others
    not_modelled  ///< it needs another network's curve
};
const char* name_of(Standing standing) noexcept;

struct Row {
    std::string id;    ///< B1 to B21, "ring", or empty: of this library alone
    std::string what;  ///< the measured quantity
    std::string unit;
    std::string paper;                  ///< as printed; empty: no such number
    std::optional<double> paper_value;  ///< the base of the error
    std::optional<double> simulated;
    Standing standing = Standing::predicted;
    std::string note;
    std::optional<double> here{};  ///< on this machine, if somebody measured it

    /// How far the simulation is above the paper, in percent.
    std::optional<double> error_percent() const noexcept;
};

/// Measures all rows; a second or two.
std::vector<Row> paper_table();

}  // namespace simulator
