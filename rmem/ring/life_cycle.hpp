// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The lock under which a ring is made, joined and removed, and what is in it once is put there.
///
/// Thread safety: functions of their arguments. Errors: rmem::Error(timed_out).

#include "rmem/base/clock.hpp"
#include "rmem/ring/segment.hpp"

#include <cstdint>
#include <string>

namespace rmem {

/// The kernel lets go of what a killed process holds in less, and it may be gone before.
inline constexpr std::int64_t kDyingNs = 100'000'000;

[[nodiscard]] ByteLock life_cycle_lock(const Segment& segment, const std::string& name,
                                       Deadline deadline);

}  // namespace rmem
