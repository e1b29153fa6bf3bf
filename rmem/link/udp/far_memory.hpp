// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whether the long messages of a ring of link udp or fabric go past it, and through which network.
///
///   RMEM_BULK   how messages of more than 64 KiB go between nodes: as all others (ring), or read
///               by their receiver through libfabric, which the ring's key does not protect
///               (fabric; the default where there is no key)
///
/// Through RMEM_PROVIDER's on link fabric, else TCP. MPI's are those of more than 64 KiB, the
/// billboard's those that are larger than a data partition, too.
///
/// Thread safety: any thread. Errors: Error(bad_environment), and those of
/// rmem/link/udp/engine_settings.hpp; with RMEM_BULK unset, what the engine's settings lack means
/// that they are another process's, and long messages go over the ring.

#include "rmem/link/far_memory.hpp"
#include "rmem/ring/ring.hpp"

#include <functional>
#include <memory>
#include <string>

namespace rmem {

/// The way of long messages of a rank at this node to those of other nodes; null where they go over
/// the ring, which outlives it. `told` gets a sentence when some must go there, though they should
/// not. What it needs of the system is asked for when the first message is offered, here or by
/// another.
[[nodiscard]] RMEM_API std::unique_ptr<FarMemory> far_memory_of(
    Ring& ring, unsigned node, std::function<void(const std::string& sentence)> told);

}  // namespace rmem
