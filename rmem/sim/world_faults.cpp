// SPDX-License-Identifier: Apache-2.0

/// Cards that fail and come back, and cables.

#include "rmem/sim/world.hpp"

#include <algorithm>

namespace rmem::sim {

void World::schedule_wire_faults() {
    for (const WireFault& fault : config_.faults.wire) {
        at(fault.at_ns, [this, fault] {
            if (fault.kind == WireFault::Kind::cable) {
                set_cable(fault.ring, fault.place, fault.up);
            } else if (fault.up) {
                join_node(fault.place, [] {});
            } else {
                fail_node(fault.place);
            }
        });
    }
}

void World::set_cable(std::uint32_t ring, unsigned from_node, bool up) {
    check_node(from_node);
    wire_.set_cable(ring, from_node, up, now_ns_);
    horizon_ns_ = std::min(horizon_ns_, now_ns_);
    tell(up ? EventKind::cable_mended : EventKind::cable_cut, static_cast<std::uint16_t>(from_node),
         nullptr, now_ns_, kNoRank, ring);
}

void World::delay_writes(unsigned id, std::uint64_t count, std::int64_t by_ns) {
    check_node(id);
    nodes_[id].delays_due = count;
    nodes_[id].delay_ns = std::max<std::int64_t>(by_ns, 0);
}

void World::lose_writes(unsigned id, std::uint64_t count) {
    check_node(id);
    nodes_[id].losses_due += count;
}

void World::repeat_writes(unsigned id, std::uint64_t count) {
    check_node(id);
    nodes_[id].repeats_due += count;
}

void World::fail_node(unsigned id) {
    check_node(id);
    Node& node = nodes_[id];
    if (!node.alive) return;
    node.alive = node.complete = false;
    ++node.joins;  // a join under way is void
    node.gone_ns = now_ns_ + settling_ns();
    wire_.set_alive(id, false, now_ns_);
    tell(EventKind::node_failed, static_cast<std::uint16_t>(id), nullptr, now_ns_);
    for (unsigned r = 0; r < ranks(); ++r) {
        if (ranks_[r].node == id) kill(r);
    }
    horizon_ns_ = std::min(horizon_ns_, now_ns_);
}

void World::join_node(unsigned id, std::function<void()> joined) {
    check_node(id);
    Node& node = nodes_[id];
    if (node.alive) return;
    node.alive = true;
    wire_.set_alive(id, true, now_ns_);
    // From now on it hears everything; the writes that had passed it by are in every other bank
    // when all writes that were on the wire are through.
    at(now_ns_ + settling_ns(), [this, id, joins = ++node.joins, then = std::move(joined)] {
        complete_join(id, joins, then);
    });
}

void World::complete_join(unsigned id, unsigned joins, const std::function<void()>& joined) {
    Node& node = nodes_[id];
    if (node.joins != joins) return;  // it has failed again
    const auto source = complete_node_before(id);
    if (source && !take_memory_of(*source, id)) {
        at(now_ns_ + settling_ns(),
           [this, id, joins, joined] { complete_join(id, joins, joined); });
        return;
    }
    node.complete = true;
    node.finished = flight_.count_of(static_cast<std::uint16_t>(id));
    tell(EventKind::node_joined, static_cast<std::uint16_t>(id), nullptr, now_ns_);
    note_liveness();
    joined();
}

/// False while the source lacks something that the node has already: it comes to it later. Writes
/// that it lacks of a node that is gone, and of which nothing can be on its way any more, are lost.
bool World::take_memory_of(unsigned source, unsigned id) {
    const Node& from = nodes_[source];
    Node& node = nodes_[id];
    for (unsigned o = 0; o < nodes(); ++o) {
        const bool may_come = nodes_[o].complete || now_ns_ < nodes_[o].gone_ns;
        if (o != id && o != source && may_come && node.applied[o] > from.applied[o]) return false;
    }
    const std::uint64_t own = node.applied[id];
    node.bank = from.bank;
    node.applied = from.applied;
    node.applied[id] = own;
    return true;
}

/// The nearest one upstream with all its memory: writes that this one lacks come past the node
/// later.
std::optional<unsigned> World::complete_node_before(unsigned id) const {
    for (unsigned steps = 1; steps < nodes(); ++steps) {
        const unsigned candidate = (id + nodes() - steps) % nodes();
        if (nodes_[candidate].complete) return candidate;
    }
    return std::nullopt;
}

/// The longest that a packet which left its source can still be on the wire.
std::int64_t World::settling_ns() const noexcept {
    const TimingProfile& timing = config_.ring.timing;
    return std::max<std::int64_t>(
        2 * rmem::bound_ns(timing, nodes(), timing.packet_bytes / std::uint32_t{kWordBytes}), 1);
}

}  // namespace rmem::sim
