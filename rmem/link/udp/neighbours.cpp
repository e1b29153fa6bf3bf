// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/neighbours.hpp"

#include "rmem/ring/node_board.hpp"

#include <exception>

namespace rmem::udp {

namespace {

/// Of which the board shows the number.
std::uint64_t incarnation_on(const NodeBoard& board) noexcept {
    // relaxed is enough: an old one is no neighbour yet, and is looked for again with the next
    return board.incarnation.load(std::memory_order_relaxed);
}

}  // namespace

Neighbours::Neighbours(const Ring& ring) : ring_(ring), neighbours_(ring.config().nodes) {}

void Neighbours::look_for(unsigned node, Neighbour& neighbour) const noexcept {
    neighbour.ring.reset();
    try {
        auto ring = Ring::observe(ring_.config().segment_name(node), Mapping::Access::load);
        if (incarnation_on(ring->board()) == neighbour.incarnation)
            neighbour.ring = std::move(ring);
    } catch (const std::exception&) {  // it is not on this host, or may not be looked at
    }
}

int Neighbours::processor_of(unsigned node) noexcept {
    if (node >= neighbours_.size()) return -1;
    Neighbour& neighbour = neighbours_[node];
    // relaxed is enough: an old one is asked for again
    const std::uint64_t met = ring_.board().nodes[node].incarnation.load(std::memory_order_relaxed);
    if (neighbour.incarnation != met) neighbour = {met, 0, nullptr};
    if (neighbour.asked < kAskedToLook && ++neighbour.asked == kAskedToLook)
        look_for(node, neighbour);
    if (!neighbour.ring) return -1;
    const NodeBoard& board = neighbour.ring->board();
    return static_cast<int>(board.processor.get()) - 1;
}

}  // namespace rmem::udp
