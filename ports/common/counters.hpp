// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a port counts at this rank: in its block of the rank's slot, where any process of the host
/// can read it while this one is stuck. A simulated ring has no slots: there each rank counts for
/// itself.
///
/// Each port lists its counters in a counters.hpp of its own, as X(identifier, unit, meaning), for
/// RMEM_DEFINE_COUNTERS (rmem/ring/counters.hpp); the names of all are in one table for tools
/// (tools/watch/port_counters.hpp).
/// Thread safety: counts the thread that holds the endpoint; anybody reads.

#include "billboard/endpoint.hpp"
#include "ports/common/port_block.hpp"
#include "rmem/ring/counters.hpp"
#include "rmem/ring/ring.hpp"

#include <cstdint>
#include <memory>

namespace ports {

/// That block of a rank; null: no segment shows it here.
[[nodiscard]] inline rmem::PortCounters* counters_of(billboard::Endpoint& endpoint,
                                                     billboard::Class port, unsigned rank) {
    rmem::Ring* const ring = endpoint.ring();
    return ring == nullptr ? nullptr : &ring->rank(rank).ports[port_block(port)];
}

class PortCounts {
public:
    PortCounts(billboard::Endpoint& endpoint, billboard::Class port)
        : block_(counters_of(endpoint, port, endpoint.rank())) {
        if (block_ != nullptr) return;
        own_ = std::make_unique<rmem::PortCounters>();
        block_ = own_.get();
    }
    PortCounts(const PortCounts&) = delete;
    PortCounts& operator=(const PortCounts&) = delete;

    template <class Id>
    void add(Id id, std::uint64_t n = 1) noexcept {
        block_->add(id, n);
    }
    template <class Id>
    [[nodiscard]] std::uint64_t get(Id id) const noexcept {
        return block_->get(id);
    }
    /// For an object that counts often, and not as long as this one.
    [[nodiscard]] rmem::PortCounters& block() noexcept { return *block_; }

private:
    rmem::PortCounters* block_;
    std::unique_ptr<rmem::PortCounters> own_;
};

}  // namespace ports
