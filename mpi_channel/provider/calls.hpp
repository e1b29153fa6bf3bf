// SPDX-License-Identifier: Apache-2.0
#pragma once

/// libfabric's many ways to put a send, a receive or an access, as one EndpointObject::Call or
/// AccessCall each.

#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>

namespace mpi_channel::provider {

/// Of a call: fi_inject, whose success nobody hears of. (A bit that libfabric keeps for its own.)
inline constexpr std::uint64_t kNeverTold = std::uint64_t{1} << 63;

// Bits that a request carries to its completion (SendOrder::mark and its like).
inline constexpr std::uint32_t kTold = 1;  ///< in a queue, even without an error
inline constexpr std::uint32_t kCounted = 2;
inline constexpr std::uint32_t kInjected = 4;  ///< in no queue: an entry would have no context

[[nodiscard]] fi_ops_msg& message_calls();
[[nodiscard]] fi_ops_tagged& tagged_calls();
[[nodiscard]] fi_ops_rma& access_calls();
/// Of a domain: memory regions.
[[nodiscard]] fi_ops_mr& memory_calls();
/// Whether the program says so, by BBP_CALLS_MEET_SYMBOL.
[[nodiscard]] bool calls_may_meet();

}  // namespace mpi_channel::provider
