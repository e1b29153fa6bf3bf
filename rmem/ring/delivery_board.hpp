// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a ring on link `ring` says to its writers, which look at it at each write.
/// Thread safety: any process.

#include "rmem/ring/config.hpp"

#include <atomic>
#include <cstdint>

namespace rmem {

/// In shared memory.
struct alignas(kLineBytes) DeliveryBoard {
    /// How many engine threads are to be woken by the next write
    /// (rmem/ring/waiting/sleeping_engines.hpp).
    std::atomic<std::uint32_t> engines_asleep;
    /// In the way that writes take (rmem/link/ring/delivery.hpp): a node was taken in, a rank's
    /// RankSlot::wants_each_write has changed, a rank has stopped delivering, a recorder has come.
    std::atomic<std::uint32_t> changes;
    /// Processes that read the logs and want to know when each write was made. A killed one is
    /// counted on, and costs each write a look at the clock.
    std::atomic<std::uint32_t> recorders;
    /// Nodes of which a twin is kept (rmem/ring/bank.hpp); on link udp, too.
    std::atomic<std::uint32_t> twins;
    /// Rows of guests that were ever taken (Ring::seats()).
    std::atomic<std::uint32_t> guest_rows;

    void note_change() noexcept {
        // (1) - this release-add synchronizes-with the acquire-loads rmem/link/ring/delivery.cpp
        // (1) and rmem/link/ring/engine_logs.cpp (2)
        changes.fetch_add(1, std::memory_order_release);
    }
};

}  // namespace rmem
