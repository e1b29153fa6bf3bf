// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The simulator's wire: one register-insertion ring, or rings joined by a ring of bridges.
///
/// Of a hierarchy each leaf ring has one member more, its bridge, which is a member of the backbone
/// ring, too. A bridge stores what passes it: a write of its leaf goes on to the backbone, one that
/// the backbone brings to its leaf, each `bridge_ns` after its last word is in, and inserted as by
/// any node. It is the origin on the ring onto which it forwards, and removes there what comes
/// round. A write that finds a bridge's transmit FIFO full waits in the bridge, so nothing is lost
/// there and each origin keeps its order. In a hierarchy the nodes' FIFOs hold off, too, with any
/// profile.
///
/// Thread safety: none.
/// Invariants:    outcomes come in time order; a write arrives at every other node once and returns
///                once, after its last arrival; or is lost, as rmem/wire/model.hpp says (a single
///                ring only: hierarchies have no faults). Equal inputs give equal outcomes, however
///                advance() is sliced; at one instant leaf rings come in order and the backbone
///                last.
/// Units:         nanoseconds.
/// Errors:        the constructor throws Error(bad_node_count), and Error(bad_profile) for a bridge
///                that would be early; set_alive and set_cable throw Error(bad_fault) on
///                hierarchies.
/// Source:        the hierarchy is in the manual only as a fact ("256 nodes, more with a hierarchy
///                of rings"); how a bridge works, and its delay, are reconstruction.

#include "rmem/base/time.hpp"
#include "rmem/sim/first_time.hpp"
#include "rmem/wire/model.hpp"
#include "rmem/wire/timing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmem::sim {

/// A bridge takes a write in whole and looks up where it goes: taken as one node's least delay.
inline constexpr std::int64_t kDefaultBridgeNs = 247;

struct Topology {
    std::uint32_t rings = 1;           ///< leaf rings, up to 256
    std::uint32_t nodes_per_ring = 0;  ///< without the bridge: up to 256, in a hierarchy up to 255
    std::int64_t bridge_ns = kDefaultBridgeNs;

    std::uint32_t nodes() const noexcept { return rings * nodes_per_ring; }
};

class RMEM_API Wire {
public:
    /// `start_ns`: no write is older.
    Wire(const TimingProfile& profile, const Topology& topology, std::int64_t start_ns = 0);

    /// As WireModel's; nodes count through the leaf rings.
    WireSubmit submit(const WireWrite& write);
    template <class Sink>
    void advance(std::int64_t until_ns, Sink&& sink) {
        if (rings_.size() == 1) [[likely]]
            return rings_.front().advance(until_ns, sink);
        while (next_time_ns() <= until_ns) {
            advance_one();
            for (const WireOutcome& outcome : outcomes_) sink(outcome);
        }
        now_ns_ = std::max(now_ns_, until_ns);
    }
    std::int64_t now_ns() const noexcept {
        return rings_.size() == 1 ? rings_.front().now_ns() : now_ns_;
    }
    std::int64_t next_time_ns() const noexcept {
        return rings_.size() == 1 ? rings_.front().next_time_ns() : next_.time_ns();
    }
    /// Lets time pass on the node's ring, on which nothing happens until then. Its FIFO is to be
    /// asked at that time: writes submitted for later are not in it, and words leave it one by one.
    void bring_to(std::uint32_t node, std::int64_t time_ns) {
        rings_[ring_of(node)].advance(time_ns, [](const WireOutcome&) {});
    }
    std::uint32_t fifo_occupancy(std::uint32_t node) {
        return at_now(ring_of(node)).fifo_occupancy(place_of(node));
    }
    std::int64_t room_at(std::uint32_t node, std::uint32_t words = 1) {
        return at_now(ring_of(node)).room_at(place_of(node), words);
    }
    std::int64_t next_word_ns(std::uint32_t node) {
        return at_now(ring_of(node)).next_word_ns(place_of(node));
    }
    void report_next_sent(std::uint32_t node) {
        rings_[ring_of(node)].report_next_sent(place_of(node));
    }
    void report_sent(bool on) noexcept;

    void set_alive(std::uint32_t node, bool alive, std::int64_t time_ns);
    void set_cable(std::uint32_t ring, std::uint32_t from_node, bool up, std::int64_t time_ns);

    const Topology& topology() const noexcept { return topology_; }
    /// The counters of the node's card: in a hierarchy those of its own ring.
    WireCounters counters(std::uint32_t node) const noexcept;
    WireCounters totals() const noexcept;  ///< of the nodes and bridges of all rings
    /// The promised most propagation of one write between any two nodes, as rmem::bound_ns says it
    /// for one ring; of a hierarchy: while nothing else is in the bridges' FIFOs. 0 when the
    /// profile promises nothing.
    std::int64_t bound_ns(std::uint32_t words = 1) const noexcept;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    /// A write in a hierarchy: the tag that it came with, and on how many rings it still goes
    /// round.
    struct Carried {
        std::uint64_t tag = 0;
        std::uint64_t offset = 0;
        std::uint32_t bytes = 0;
        std::uint32_t rings_left = 0;
        std::uint16_t origin = 0;
        bool interrupt = false;
    };

    bool is_leaf(std::size_t ring) const noexcept { return ring < topology_.rings; }
    std::size_t ring_of(std::uint32_t node) const noexcept {
        return rings_.size() == 1 ? 0 : node / topology_.nodes_per_ring;
    }
    std::uint32_t place_of(std::uint32_t node) const noexcept {
        return rings_.size() == 1 ? node : node % topology_.nodes_per_ring;
    }
    /// The ring, brought to the present. Only between two advance(): then it has no event that is
    /// due.
    WireModel& at_now(std::size_t ring) {
        if (rings_.size() != 1) rings_[ring].advance(now_ns_, [](const WireOutcome&) {});
        return rings_[ring];
    }
    WireSubmit submit_on(std::size_t ring, const WireWrite& write);
    void advance_one();
    void on_outcome(std::size_t ring, const WireOutcome& outcome);
    void forward(std::size_t ring, std::uint16_t from, std::uint64_t carried, std::int64_t time_ns);
    void finish(const WireOutcome& outcome);
    void refuse_faults() const;

    Topology topology_;
    std::vector<WireModel> rings_;  ///< the leaves, and last the backbone if there is more than one
    // Of hierarchies only. A ring's own time may lie behind: it is that of its last event.
    std::int64_t now_ns_;
    FirstTime next_;  ///< of each ring
    std::vector<Carried> carried_;
    std::vector<std::uint32_t> free_;    ///< of carried_
    std::vector<WireOutcome> inner_;     ///< of the ring that advances
    std::vector<WireOutcome> outcomes_;  ///< of them, those that nodes see
};

}  // namespace rmem::sim
