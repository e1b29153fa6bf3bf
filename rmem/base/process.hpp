// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What /proc says about a process of this host.
/// Thread safety: any thread. Errors: none; what cannot be told is 0.

#include "rmem/error.hpp"

#include <cstdint>

namespace rmem {

/// Start time in clock ticks since boot; 0 when there is no such process.
RMEM_API std::uint64_t process_start_time(unsigned pid) noexcept;
/// The process that started it (or took it over); 0 when there is no such process.
RMEM_API unsigned process_parent(unsigned pid) noexcept;

}  // namespace rmem
