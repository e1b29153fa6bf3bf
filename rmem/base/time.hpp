// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Points in time are nanoseconds, of a clock that the context names.

#include <cstdint>
#include <limits>

namespace rmem {

inline constexpr std::int64_t kNsPerMs = 1'000'000, kNsPerSecond = 1'000'000'000;
/// After all other times.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace rmem
