// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A recorded flight's controls, and the end that it should come to, from CSV files.
///
/// Lines that begin with # are comments. Controls: time_s, throttle (0 to 1), load_factor,
/// bank_deg; times grow from 0; between two records the controls change evenly. An expected end:
/// name, value, tolerance. Errors: std::runtime_error with file, line and the text found.

#include "aircraft.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace cockpit {

class Recording {
public:
    explicit Recording(const std::string& file);

    Controls at(double time_s) const;
    double seconds() const { return times_s_.back(); }

private:
    std::vector<double> times_s_;
    std::vector<Controls> controls_;
};

struct Expectation {
    std::string name;
    double value = 0.0;
    double tolerance = 0.0;
};

std::vector<Expectation> read_expectations(const std::string& file);

}  // namespace cockpit
