// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What two maps disagree about, in sentences. Thread safety: functions of their arguments.

#include "maps/map.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace maps {

/// By names, in the order of `a`, and then what `b` alone has. `in_a` and `in_b`: what they are
/// called.
[[nodiscard]] RMEM_API std::vector<std::string> differences(
    const Map& a, const Map& b, std::string_view in_a = "in the first",
    std::string_view in_b = "in the second");

}  // namespace maps
