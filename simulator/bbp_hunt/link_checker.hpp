// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Watches every event of a world and checks what the link promises:
///
///   * each word has one writer
///   * a write arrives at a node once, in its origin's order, not before it was stored, with the
///     bytes that were stored; where one is missing, the link had said that it was lost
///   * what is later than the bound is counted
///   * when all is quiet, the banks are equal, except for words whose last write was lost on its
///   way
///
/// Thread safety: none. Cost: about 20 ns an event.

#include "rmem/sim/world.hpp"
#include "simulator/bbp_hunt/coverage.hpp"
#include "simulator/bbp_hunt/scenario.hpp"
#include "simulator/hunt/findings.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace simulator::bbp {

class LinkChecker final : public rmem::sim::Observer {
public:
    LinkChecker(rmem::sim::World& world, Findings& findings);

    void on_event(const rmem::sim::Event& event) override;
    /// At the end, when the wire is empty.
    void check_quiet();

    /// Whether writes of this node, since it last joined, were lost on their way.
    bool has_lost(unsigned node) const { return nodes_[node].lost != 0; }
    /// A new incarnation begins with a clean slate.
    void forget_losses(unsigned node) { nodes_[node].lost = 0; }

private:
    struct Stored {
        std::uint64_t offset = 0;
        std::uint32_t bytes = 0;
        std::uint64_t sum = 0;  ///< of its bytes
        bool lost = false;
    };
    struct NodeState {
        std::vector<std::uint64_t> last;  ///< arrived, of each origin
        std::deque<Stored> stored;        ///< own writes that may still arrive somewhere
        std::uint64_t first = 1;          ///< number of the front one
        std::uint64_t lost = 0;
        std::int64_t newest_stored_ns = 0;  ///< of what has arrived
        bool joining = false;
    };

    void on_stored(const rmem::sim::Event& e);
    void on_arrived(const rmem::sim::Event& e);
    void on_lost(const rmem::sim::Event& e);
    void on_returned(const rmem::sim::Event& e);
    void except_composed(unsigned node);
    void check_bank(unsigned node);
    void check_missing(const rmem::sim::Event& e, std::uint64_t from);
    Stored* find(unsigned origin, std::uint64_t number);

    rmem::sim::World& world_;
    Findings& findings_;
    std::vector<NodeState> nodes_;
    std::vector<std::uint8_t> writer_;   ///< of each word: the rank + 1
    std::vector<std::uint32_t> value_;   ///< that it was given last
    std::vector<std::uint8_t> unequal_;  ///< words that may differ from bank to bank
    std::vector<std::uint64_t> late_;    ///< arrivals after the bound, per node
};

}  // namespace simulator::bbp
