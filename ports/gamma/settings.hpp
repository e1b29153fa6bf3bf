// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a GAMMA process may be told by its environment: RMEM_GAMMA (docs/man/rmem.7).
/// Thread safety: a value. Errors: read() throws `rmem::Error`.

#include "rmem/ring/config.hpp"

#include <cstdint>
#include <optional>

namespace ports::gamma {

struct Settings {
    /// How long a frame waits for room at its receiver before it is lost: `patience` of RMEM_GAMMA.
    std::int64_t patience_ns = 100'000'000;
    /// The same of a flow-controlled one where nothing can be taken in meanwhile.
    std::int64_t deadlock_ns = 2'000'000'000;
    std::int64_t join_timeout_ns = rmem::kDefaultJoinTimeoutNs;
    bool has_progress_thread = true;  ///< `progress`
    std::optional<unsigned> par_pid;  ///< `pid`
    std::uint32_t first_number = 0;   ///< of all streams

    [[nodiscard]] RMEM_API static Settings read();
};

}  // namespace ports::gamma
