// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A program's surroundings: a clock and an environment. They are this host's, or, in a simulated
/// process, its world's.
///
/// Thread safety: each thread has its own.

#include "rmem/error.hpp"

#include <cstdint>

namespace rmem {

/// The host of a simulated process: only rmem::sim::Process is one.
class ProgramHost {
public:
    /// The time of its clock, in nanoseconds.
    virtual std::int64_t now_ns() const noexcept = 0;
    /// Null: not set.
    virtual const char* variable(const char* name) const noexcept = 0;

protected:
    ~ProgramHost() = default;
};

/// That of the program which runs on this thread; null: this host.
RMEM_API ProgramHost* program_host() noexcept;

/// Says so to what is called from now on; a simulator does, before a process runs and after.
RMEM_API void set_program_host(ProgramHost* host) noexcept;

}  // namespace rmem
