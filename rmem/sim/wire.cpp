// SPDX-License-Identifier: Apache-2.0
#include "rmem/sim/wire.hpp"

#include <fmt/format.h>

namespace rmem::sim {

namespace {

/// A bridge's FIFO loses nothing, whatever cards do.
TimingProfile held_off(TimingProfile profile) {
    profile.overflow = FifoPolicy::hold_off;
    return profile;
}

}  // namespace

Wire::Wire(const TimingProfile& profile, const Topology& topology) : topology_(topology) {
    if (topology.rings <= 1) {
        rings_.emplace_back(WireModel(profile, topology.nodes_per_ring));
        return;
    }
    if (topology.rings > UINT16_MAX / topology.nodes_per_ring) {
        throw Error(Errc::bad_node_count,
                    fmt::format("a hierarchy of {} rings of {} nodes has more than {} nodes",
                                topology.rings, topology.nodes_per_ring, UINT16_MAX));
    }
    for (std::uint32_t r = 0; r < topology.rings; ++r) {
        rings_.emplace_back(WireModel(held_off(profile), topology.nodes_per_ring + 1));
    }
    rings_.emplace_back(WireModel(held_off(profile), topology.rings));
}

WireSubmit Wire::submit(const WireWrite& write) {
    if (rings_.size() == 1) [[likely]]
        return rings_.front().model.submit(write);
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(carried_.size()));
        carried_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    WireWrite inner = write;
    inner.origin = static_cast<std::uint16_t>(write.origin % topology_.nodes_per_ring);
    inner.tag = index;
    const WireSubmit result = rings_[write.origin / topology_.nodes_per_ring].model.submit(inner);
    if (result == WireSubmit::refused) return result;
    free_.pop_back();
    carried_[index] = {write.tag,           write.offset, write.bytes,
                       topology_.rings + 1, write.origin, write.interrupt};
    return result;
}

std::size_t Wire::next_ring() const noexcept {
    std::size_t next = 0;
    std::int64_t least = kNever;
    for (std::size_t r = 0; r < rings_.size(); ++r) {
        const std::int64_t time = rings_[r].model.next_time_ns();
        if (time < least) {
            least = time;
            next = r;
        }
    }
    return next;
}

/// The ring with the least time does what it has to do then. What crosses a bridge is submitted to its
/// next ring no earlier, so no ring gets a write of its past.
void Wire::advance_one() {
    const std::size_t ring = next_ring();
    inner_.clear();
    outcomes_.clear();
    WireModel& model = rings_[ring].model;
    model.advance(model.next_time_ns(), [this](const WireOutcome& o) { inner_.push_back(o); });
    for (const WireOutcome& outcome : inner_) on_outcome(ring, outcome);
}

void Wire::on_outcome(std::size_t ring, const WireOutcome& outcome) {
    const bool at_bridge = !is_leaf(ring) || outcome.node == topology_.nodes_per_ring;
    if (outcome.kind == WireOutcomeKind::returned) return finish(outcome.tag, outcome);
    if (outcome.kind == WireOutcomeKind::arrived && at_bridge) {
        // On the backbone to the leaf of that bridge, on a leaf to the backbone, from its own bridge.
        const std::size_t to = is_leaf(ring) ? topology_.rings : outcome.node;
        const auto from =
            static_cast<std::uint16_t>(is_leaf(ring) ? ring : topology_.nodes_per_ring);
        return forward(to, from, outcome.tag, outcome.time_ns + topology_.bridge_ns);
    }
    const Carried& write = carried_[outcome.tag];
    if (at_bridge || (outcome.kind == WireOutcomeKind::sent &&
                      ring != write.origin / topology_.nodes_per_ring)) {
        return;  // what bridges do is no node's doing
    }
    WireOutcome seen = outcome;
    seen.tag = write.tag;
    seen.origin = write.origin;
    seen.node = static_cast<std::uint16_t>(ring * topology_.nodes_per_ring + outcome.node);
    outcomes_.push_back(seen);
}

void Wire::forward(std::size_t ring, std::uint16_t from, std::uint64_t carried,
                   std::int64_t time_ns) {
    const Carried& write = carried_[carried];
    WireWrite out;
    out.origin = from;
    out.interrupt = write.interrupt;
    out.bytes = write.bytes;
    out.offset = write.offset;
    out.time_ns = time_ns;
    out.tag = carried;
    rings_[ring].model.submit(out);
}

/// It has come round on one more ring; on the last, it is back as a whole.
void Wire::finish(std::uint64_t index, const WireOutcome& outcome) {
    Carried& write = carried_[index];
    if (--write.rings_left != 0) return;
    WireOutcome seen = outcome;
    seen.tag = write.tag;
    seen.node = seen.origin = write.origin;
    outcomes_.push_back(seen);
    free_.push_back(static_cast<std::uint32_t>(index));
}

std::uint32_t Wire::fifo_occupancy(std::uint32_t node) const noexcept {
    return rings_[node / topology_.nodes_per_ring].model.fifo_occupancy(node %
                                                                        topology_.nodes_per_ring);
}

std::int64_t Wire::room_at(std::uint32_t node, std::uint32_t words) const noexcept {
    return rings_[node / topology_.nodes_per_ring].model.room_at(node % topology_.nodes_per_ring,
                                                                 words);
}

void Wire::report_sent(bool on) noexcept {
    for (LeafRing& ring : rings_) ring.model.report_sent(on);
}

void Wire::refuse_faults() const {
    if (rings_.size() == 1) return;
    throw Error(Errc::bad_fault,
                "nodes and cables of a hierarchy of rings cannot fail; simulate a single ring");
}

void Wire::set_alive(std::uint32_t node, bool alive, std::int64_t time_ns) {
    refuse_faults();
    rings_.front().model.set_alive(node, alive, time_ns);
}

void Wire::set_cable(std::uint32_t ring, std::uint32_t from_node, bool up, std::int64_t time_ns) {
    refuse_faults();
    rings_.front().model.set_cable(ring, from_node, up, time_ns);
}

WireCounters Wire::counters(std::uint32_t node) const noexcept {
    return rings_[node / topology_.nodes_per_ring].model.counters(node % topology_.nodes_per_ring);
}

WireCounters Wire::totals() const noexcept {
    WireCounters sum;
    for (const LeafRing& ring : rings_) sum += ring.model.totals();
    return sum;
}

std::int64_t Wire::bound_ns() const noexcept {
    const TimingProfile& profile = rings_.front().model.profile();
    if (rings_.size() == 1) return rmem::bound_ns(profile, topology_.nodes_per_ring);
    const std::int64_t leaf = rmem::bound_ns(profile, topology_.nodes_per_ring + 1);
    if (leaf == 0) return 0;
    return 2 * leaf + rmem::bound_ns(profile, topology_.rings) + 2 * topology_.bridge_ns;
}

}  // namespace rmem::sim
