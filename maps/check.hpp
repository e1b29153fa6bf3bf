// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What is wrong with a map, or worth knowing, in sentences.
///
/// Thread safety: functions of their arguments. Errors: none.

#include "maps/map.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace maps {

struct Finding {
    enum class Weight : std::uint8_t { note, error };
    Weight weight = Weight::error;
    std::string sentence;
    unsigned line = 0, other_line = 0;  ///< 0: of none
};

/// Errors first, each in the order of the lines.
[[nodiscard]] RMEM_API std::vector<Finding> check(const Map& map);
[[nodiscard]] RMEM_API bool has_errors(const std::vector<Finding>& findings);

}  // namespace maps
