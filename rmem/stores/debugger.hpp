// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A debugger that looks at this process, and what it does to the program's code.
/// Thread safety: any; read_original_code() runs in a signal handler, and allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::stores {

/// Whether one is attached (or strace, or another tracer).
[[nodiscard]] bool is_debugged() noexcept;

/// The code at `address` as its file has it, where breakpoints may be in the memory. False: it is
/// of no file, or cannot be read.
[[nodiscard]] bool read_original_code(std::uint64_t address, std::span<std::byte> to) noexcept;

}  // namespace rmem::stores
