// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The simulator's wire: one register-insertion ring, or rings joined by a ring of bridges.
///
/// Of a hierarchy each leaf ring has one member more, its bridge, which is a member of the backbone
/// ring, too. A bridge stores what passes it: a write of its leaf goes on to the backbone, one that the
/// backbone brings to its leaf, each `bridge_ns` later and inserted as by any node. It is the origin on the
/// ring onto which it forwards, and removes there what comes round. Its transmit FIFO holds off: nothing is
/// lost in it, and each origin keeps its order.
///
/// Thread safety: none.
/// Invariants:    outcomes come in time order; a write arrives at every other node once and returns once,
///                after its last arrival; or is lost, as rmem/wire_model.hpp says (a single ring only:
///                hierarchies have no faults).
/// Units:         nanoseconds.
/// Errors:        the constructor throws Error(bad_node_count); set_alive and set_cable do on hierarchies.
/// Source:        the hierarchy is in the manual only as a fact ("256 nodes, more with a hierarchy of
///                rings"); how a bridge works, and its delay, are reconstruction.

#include "rmem/timing.hpp"
#include "rmem/wire_model.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace rmem::sim {

/// A bridge takes a write in whole and looks up where it goes: taken as one node's least delay.
inline constexpr std::int64_t kDefaultBridgeNs = 247;

struct Topology {
    std::uint32_t rings = 1;           ///< leaf rings
    std::uint32_t nodes_per_ring = 0;  ///< without bridges
    std::int64_t bridge_ns = kDefaultBridgeNs;

    std::uint32_t nodes() const noexcept { return rings * nodes_per_ring; }
};

class RMEM_API Wire {
public:
    static constexpr std::int64_t kNever = WireModel::kNever;

    Wire(const TimingProfile& profile, const Topology& topology);

    /// As WireModel's; nodes count through the leaf rings.
    WireSubmit submit(const WireWrite& write);
    template <class Sink>
    void advance(std::int64_t until_ns, Sink&& sink) {
        if (rings_.size() == 1) [[likely]]
            return rings_.front().model.advance(until_ns, sink);
        while (next_time_ns() <= until_ns) {
            advance_one();
            for (const WireOutcome& outcome : outcomes_) sink(outcome);
        }
    }
    std::int64_t next_time_ns() const noexcept {
        if (rings_.size() == 1) [[likely]]
            return rings_.front().model.next_time_ns();
        return rings_[next_ring()].model.next_time_ns();
    }
    std::uint32_t fifo_occupancy(std::uint32_t node) const noexcept;
    std::int64_t room_at(std::uint32_t node, std::uint32_t words) const noexcept;
    void report_sent(bool on) noexcept;

    void set_alive(std::uint32_t node, bool alive, std::int64_t time_ns);
    void set_cable(std::uint32_t ring, std::uint32_t from_node, bool up, std::int64_t time_ns);

    const Topology& topology() const noexcept { return topology_; }
    WireCounters counters(std::uint32_t node) const noexcept;
    WireCounters totals() const noexcept;  ///< of the nodes and bridges of all rings
    /// The most propagation of one word between any two nodes on idle rings, as rmem::bound_ns says it
    /// for one; 0 when the profile promises nothing.
    std::int64_t bound_ns() const noexcept;

private:
    /// A write in a hierarchy: what came in as its tag, and how many rings it still goes round on.
    struct Carried {
        std::uint64_t tag = 0;
        std::uint64_t offset = 0;
        std::uint32_t bytes = 0;
        std::uint32_t rings_left = 0;
        std::uint16_t origin = 0;
        bool interrupt = false;
    };
    struct LeafRing {
        explicit LeafRing(WireModel m) : model(std::move(m)) {}
        WireModel model;
    };

    bool is_leaf(std::size_t ring) const noexcept { return ring < topology_.rings; }
    std::size_t next_ring() const noexcept;
    void advance_one();
    void on_outcome(std::size_t ring, const WireOutcome& outcome);
    void forward(std::size_t ring, std::uint16_t from, std::uint64_t carried, std::int64_t time_ns);
    void finish(std::uint64_t carried, const WireOutcome& outcome);
    void refuse_faults() const;

    Topology topology_;
    std::vector<LeafRing> rings_;  ///< the leaves, and last the backbone if there is more than one
    std::vector<Carried> carried_;
    std::vector<std::uint32_t> free_;
    std::vector<WireOutcome> inner_;     ///< of the ring that advances
    std::vector<WireOutcome> outcomes_;  ///< of them, what nodes see
};

}  // namespace rmem::sim
