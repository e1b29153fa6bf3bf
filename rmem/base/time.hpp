// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Points in time are nanoseconds, of a clock that the context names.

#include <cstdint>
#include <limits>

namespace rmem {

/// After all other times.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace rmem
