// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How much of a rank's log a node's bank has: what its engine has applied, and what the rank has
/// delivered everywhere itself (rmem/link/ring/delivery.hpp).
/// Thread safety: any process; it only grows.

#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_log.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace rmem {

/// Whether ranks that deliver do so to this node: it was taken into the ring, and its bank is whole
/// and has all that came before they began.
inline bool is_delivered_to(const NodeSlot& slot) noexcept {
    // (2) - this acquire-load synchronizes-with the acq_rel adds rmem/ring/membership.cpp (3) and
    // rmem/ring/membership.cpp (4)
    const std::uint32_t present = slot.present.load(std::memory_order_acquire);
    // relaxed is enough: it is of a node that nobody is left in
    return present != 0 && !is_in_part(present) &&
           slot.behind.load(std::memory_order_relaxed) != present;
}

/// The position in the log; the bank has what lies below it.
inline std::uint64_t applied_of(const Ring& ring, unsigned node, unsigned rank) noexcept {
    const NodeSlot& slot = ring.node(node);
    // (1) - this acquire-load synchronizes-with the release-exchanges
    // rmem/link/ring/engine_node.hpp (1) and rmem/link/ring/engine_outward.cpp (6)
    const std::uint64_t own = slot.applied[rank].load(std::memory_order_acquire);
    if (!is_delivered_to(slot)) return own;
    const LogHeader& log = ring.log(rank).header();
    // (3) - this acquire-load synchronizes-with the release-stores rmem/link/ring/delivery.hpp (2)
    // and rmem/link/ring/delivery.cpp (3)
    return std::max(own, log.everywhere.load(std::memory_order_acquire));
}

}  // namespace rmem
