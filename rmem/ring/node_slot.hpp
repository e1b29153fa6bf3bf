// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The state that a node's engine keeps in shared memory, for its successors and for tools.
/// Writer: the process that runs the node's engine (rmem/link/ring/engine.hpp).

#include "rmem/base/histogram.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/counters.hpp"

#include <atomic>
#include <cstdint>

namespace rmem {

constexpr bool is_in_part(std::uint32_t present) noexcept {
    return present % 2 != 0;
}

struct alignas(kLineBytes) NodeSlot {
    /// 0, or the rank in the engine: 1 + the rank, and above 16 bits its incarnation.
    std::atomic<std::uint32_t> engine_holder;
    /// Grows each time that the node is taken into the ring; 0 while it never was. is_in_part():
    /// its bank lacks what is being copied into it, or was when its first rank died.
    std::atomic<std::uint32_t> present;
    /// The `present` since which its bank lacks writes that logs need not have any more: it was
    /// left, and a rank delivers without it (rmem/link/ring/delivery.hpp).
    std::atomic<std::uint32_t> behind;
    std::atomic<std::int64_t> engine_ran_ns;  ///< when the engine last looked at the clock
    Counter<> brought;  ///< writes of others that its engines have applied, not their writers
    /// Not 0: the bank has a twin (rmem/ring/bank.hpp).
    alignas(kLineBytes) std::atomic<std::uint32_t> keeps_twin;
    alignas(kLineBytes) Counters link;  ///< LinkCounter: of the node's bank
    Histogram propagation;              ///< ns from the store at the origin to this bank
    Histogram lateness;                 ///< ns behind the wire model, while we ran
    /// Up to which position of each seat's log (rmem/ring/write_log.hpp) this bank has it.
    alignas(kLineBytes) std::atomic<std::uint64_t> applied[kMaxSeats];
    /// Incarnations of those at the node that have joined it since it was last taken in.
    alignas(kLineBytes) std::atomic<std::uint32_t> resident[kMaxSeats];
};

}  // namespace rmem
