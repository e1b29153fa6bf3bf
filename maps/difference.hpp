// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What two maps disagree about, in sentences. Thread safety: functions of their arguments.

#include "maps/map.hpp"

#include <string>
#include <vector>

namespace maps {

/// By names, in the order of `a`, and then what `b` alone has.
[[nodiscard]] std::vector<std::string> differences(const Map& a, const Map& b);

}  // namespace maps
