// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What two maps disagree about, in sentences. Thread safety: functions of their arguments.

#include "maps/map.hpp"

#include <string>
#include <vector>

namespace maps {

/// By names, in the order of `a` and then what `b` alone has; up to `most` sentences. Of what the
/// hash covers alone, if `only_hashed`.
[[nodiscard]] std::vector<std::string> differences(const Map& a, const Map& b,
                                                   std::size_t most = ~std::size_t{0},
                                                   bool only_hashed = false);

}  // namespace maps
