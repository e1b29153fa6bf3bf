// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Bits that a request of the provider carries to its completion (SendOrder::mark and its like).

#include <cstdint>

namespace mpi_channel::provider {

inline constexpr std::uint32_t kTold = 1;  ///< in a queue, even without an error
inline constexpr std::uint32_t kCounted = 2;
inline constexpr std::uint32_t kInjected = 4;  ///< in no queue: an entry would have no context

}  // namespace mpi_channel::provider
