// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The name that a user may have meant who wrote one that does not exist.
///
/// Thread safety: functions of their arguments.

#include "rmem/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace rmem {

/// Letters to insert, leave out, replace, or swap with their neighbour to make the one of the
/// other.
RMEM_API unsigned edits_between(std::string_view a, std::string_view b);

/// The name that is the fewest edits away, if those are at most `most` and fewer than half of what
/// was written; empty when there is none.
RMEM_API std::string nearest_name(std::string_view written, const std::vector<std::string>& names,
                                  unsigned most = 2);

/// " (did you mean 'x'?)", or nothing.
RMEM_API std::string did_you_mean(std::string_view written, const std::vector<std::string>& names);

}  // namespace rmem
