// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What has happened at this node (enum FM_counter of ports/fm/fm.h says what), in the rank's slot
/// of the segment, where any process of the host can read it while this one is stuck. A simulated
/// ring has no slot: there each node counts for itself.
/// Thread safety: counts who holds the endpoint; anybody reads.

#include "billboard/endpoint.hpp"
#include "ports/common/port_block.hpp"
#include "ports/fm/fm.h"
#include "rmem/ring/counters.hpp"

namespace ports::fm {

inline constexpr std::size_t kPortBlock = port_block(billboard::Class::fm);

class Counts {
public:
    explicit Counts(billboard::Endpoint& endpoint) {
        if (rmem::Ring* ring = endpoint.ring())
            block_ = &ring->rank(endpoint.rank()).ports[kPortBlock];
    }
    Counts(const Counts&) = delete;
    Counts& operator=(const Counts&) = delete;

    void add(FM_counter counter, std::uint64_t n = 1) noexcept { block_->add(counter, n); }
    std::uint64_t get(FM_counter counter) const noexcept { return block_->get(counter); }

private:
    rmem::PortCounters own_{};
    rmem::PortCounters* block_ = &own_;
};

}  // namespace ports::fm
