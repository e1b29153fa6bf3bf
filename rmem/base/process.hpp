// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What /proc says about a process of this host.
/// Thread safety: any thread. Errors: none; what cannot be told is 0.

#include "rmem/error.hpp"

#include <cstdint>

namespace rmem {

/// The namespace of that kind ("pid", "time") that this process is in; 0: it cannot be told.
RMEM_API std::uint64_t own_namespace(const char* kind) noexcept;
/// This one, for others of the host: its number, and above it the pid namespace that it is of.
RMEM_API std::uint64_t own_process() noexcept;
/// Whether such a process has ended; false for one of another pid namespace, as it cannot be told.
RMEM_API bool is_process_gone(std::uint64_t process) noexcept;
/// Start time in clock ticks since boot; 0 when there is no such process.
RMEM_API std::uint64_t process_start_time(unsigned pid) noexcept;
/// The process that started it (or took it over); 0 when there is no such process.
RMEM_API unsigned process_parent(unsigned pid) noexcept;

}  // namespace rmem
