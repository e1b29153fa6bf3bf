// SPDX-License-Identifier: Apache-2.0
// The wire model's rare events: nodes and cables that fail and come back, losses, the ideal wire.
#include "rmem/wire/state.hpp"

#include <algorithm>

namespace rmem {

using detail::kCursorBits;

void WireModel::State::on_fault(const WireEvent& event) {
    if (event.detail >= kCable) {
        const int which = event.detail - kCable;
        return set_cable(event.node, static_cast<std::uint8_t>(which / 2), which % 2 != 0);
    }
    Node& node = nodes_[event.node];
    const bool alive = event.detail == kRevives;
    if (node.alive == alive) return;
    node.alive = alive;
    retrace();
    if (alive) {
        rejoin(event.node);
    } else {
        ++node.counters.bypasses;
        bypass(event.node);
    }
}

// ---- Nodes

/// The next live node of each, and the way there. Each node goes by the one behind it: twice round,
/// since the last does not know at first what the first will find. Where none is alive it is the
/// node itself, out of reach.
void WireModel::State::retrace() {
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    const auto is_alive = [](const Node& node) { return node.alive; };
    const bool any = std::any_of(nodes_.begin(), nodes_.end(), is_alive);
    for (std::uint32_t i = 2 * count; i-- > 0;) {
        const auto id = static_cast<std::uint16_t>(i % count);
        Node& node = nodes_[id];
        node.next = any ? after(id) : id;
        node.path_ps = any ? profile_.cable_ps : count * profile_.cable_ps;
        node.reaches_next = any && node.cable_up[node.cable];
        const Node& behind = nodes_[after(id)];
        if (!any || behind.alive) continue;
        node.next = behind.next;
        node.path_ps += behind.path_ps;
        node.reaches_next = node.reaches_next && behind.reaches_next;
    }
}

std::uint16_t WireModel::State::live_before(std::uint16_t id) const noexcept {
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    std::uint32_t at = id;
    for (std::uint32_t steps = 0; steps < count; ++steps) {
        at = (at + count - 1) % count;
        if (nodes_[at].alive) break;
    }
    return static_cast<std::uint16_t>(at);
}

/// The optical switch closes: packets in the node's register go straight on, after those that the
/// node has already sent; packets that wait in its TX FIFO are lost. An own packet on the wire is
/// completed.
void WireModel::State::bypass(std::uint16_t id) {
    Node& node = nodes_[id];
    drop_queue(id);
    if (node.own_packet != kNoPacket) close(node, node.own_packet);
    Node& next = nodes_[node.next];
    const std::uint64_t least_stay = node.path_ps + profile_.node_delay_ps;
    if (node.open_packet != kNoPacket) {
        follow(next, node.open_packet, node.open_start + least_stay);
    } else {
        next.input_floor = std::max(input_floor(next), node.free_at + least_stay);
    }

    const auto to_node = [id](const WireEvent& event) {
        return event.node == id &&
               (event.kind() == WireEventKind::hop || event.kind() == WireEventKind::delivery);
    };
    for (const WireEvent& event : queue_.extract(to_node)) {
        if (event.kind() == WireEventKind::hop) {
            Packet& packet = packets_[event.packet];
            if (packet.origin == id) packet.circled = true;
            // At once is not before now; packets that follow it in the register stay behind it.
            const std::uint64_t leave = std::max(now_, event.time - profile_.node_delay_ps);
            follow(next, event.packet, forward(event.packet, id, leave));
        }
        release(event.packet);
    }
}

/// A node that comes in again finds the previous one's packet still passing.
void WireModel::State::rejoin(std::uint16_t id) {
    Node& node = nodes_[id];
    drop_queue(id);
    const std::uint16_t before = live_before(id);
    const Node& previous = nodes_[before];
    node.pace = node.paid_at = node.turn_at = now_;
    node.free_at = now_;
    node.open_packet = kNoPacket;
    node.seen.fill(0);
    node.seen_cost = 0;
    if (before != id) {
        node.free_at = std::max(now_, previous.free_at + previous.path_ps);
        node.open_packet = previous.open_packet;
        node.open_start = previous.open_start + previous.path_ps;
    }
    arm(id);
}

// ---- Cables

void WireModel::State::set_cable(std::uint16_t id, std::uint8_t ring, bool up) {
    Node& node = nodes_[id];
    const bool used = node.cable == ring;
    const bool was_up = node.cable_up[node.cable];
    node.cable_up[ring] = up;
    const std::uint8_t other = ring == 0 ? 1 : 0;
    if (up && !was_up) node.cable = ring;
    const bool cut = used && !up && was_up;
    const bool healed = cut && node.cable_up[other];
    if (healed) {
        node.cable = other;
        ++node.counters.switch_overs;
    }
    retrace();
    if (cut) damage(id, healed);
}

/// A cable in use was cut after `from`: a packet that has left its sender and is not yet whole in
/// the next node is damaged. BURST loses it; PLATINUM sends it again over the other ring, at once,
/// from the sender of this segment, so that an origin's order holds.
void WireModel::State::damage(std::uint16_t from, bool healed) {
    Cut cut;
    cut.sender = nodes_[from].alive ? from : live_before(from);
    cut.receiver = nodes_[from].next;
    cut.healed = healed;
    if (!nodes_[cut.sender].alive || !nodes_[cut.receiver].alive) return;
    const auto take = [this, &cut](WireEventKind kind) {
        return queue_.extract([&cut, kind](const WireEvent& event) {
            return event.node == cut.receiver && event.kind() == kind;
        });
    };
    cut.deliveries = take(WireEventKind::delivery);
    const std::vector<WireEvent> hops = take(WireEventKind::hop);
    for (const WireEvent& hop : hops) {
        // The writes before the pending delivery's are in the receiver already.
        const auto pending =
            std::find_if(cut.deliveries.begin(), cut.deliveries.end(),
                         [&hop](const WireEvent& event) { return event.packet == hop.packet; });
        const bool has_pending = pending != cut.deliveries.end();
        const auto arrived =
            static_cast<std::uint16_t>(has_pending ? pending->detail & kCursorBits : 0);
        if (damage_head(hop, arrived, &cut)) {
            release(hop.packet);
            if (has_pending) release(pending->packet);
        } else {
            queue_.put_back(hop);
            if (has_pending) queue_.put_back(*pending);
        }
        if (has_pending) cut.deliveries.erase(pending);
    }
    for (const WireEvent& delivery : cut.deliveries) damage_body(delivery, cut);
}

/// A packet whose head has not passed the receiver; false: it is unhurt.
bool WireModel::State::damage_head(const WireEvent& hop, std::uint16_t arrived, Cut* cut) {
    Node& link = nodes_[cut->sender];
    const Packet& packet = packets_[hop.packet];
    const std::uint64_t least_stay = link.path_ps + profile_.node_delay_ps;
    const std::uint64_t leave = hop.time - std::min(hop.time, least_stay);
    const std::uint64_t whole = hop.time - profile_.node_delay_ps + tail_[packet.words];
    const bool on_the_wire = leave <= now_ && now_ < whole;
    if (cut->healed && profile_.retransmits != 0) {
        // Packets that were to follow wait for the retransmitted ones.
        if (!on_the_wire && leave >= cut->busy_until) return false;
        const std::uint64_t start = std::max(on_the_wire ? now_ : leave, cut->busy_until);
        if (on_the_wire) ++nodes_[packet.origin].counters.retransmitted;
        occupy(link, hop.packet, start);
        cut->busy_until = start + tail_[packet.words];
        forward(hop.packet, cut->sender, start, arrived);
        return true;
    }
    if (!on_the_wire && (cut->healed || leave <= now_)) return false;
    lose_rest(hop.packet, packet.first_record + arrived, cut->sender);
    lose_rest(hop.packet, packet.first_record, cut->receiver);
    return true;
}

/// A packet whose head is through and whose end is not: damaged anyway, and passed on so.
void WireModel::State::damage_body(const WireEvent& delivery, const Cut& cut) {
    const Packet& packet = packets_[delivery.packet];
    if (delivery.time > now_) {
        if (cut.healed && profile_.retransmits != 0) {
            ++nodes_[packet.origin].counters.retransmitted;
        } else {
            lose_rest(delivery.packet, packet.first_record + (delivery.detail & kCursorBits),
                      cut.sender);
        }
    }
    queue_.put_back(delivery);
}

// ---- Losses

void WireModel::State::lose_rest(std::uint32_t index, std::uint64_t first_record,
                                 std::uint16_t at) {
    const Packet& packet = packets_[index];
    if (packet.circled) return;  // it has been everywhere
    Node& origin = nodes_[packet.origin];
    for (std::uint64_t n = first_record; n <= packet.last_record; ++n) {
        lose(origin, n, at, nodes_[at].alive ? WireLoss::cable : WireLoss::dead_node);
    }
}

void WireModel::State::lose(Node& origin, std::uint64_t number, std::uint16_t at, WireLoss cause) {
    const auto id = static_cast<std::uint16_t>(&origin - nodes_.data());
    Record& record = origin.records[number];
    record.reaches = std::min(record.reaches, at == id ? 0 : distance(id, at));
    if (record.lost) return;
    record.lost = true;
    if (cause == WireLoss::fifo_full) ++origin.counters.lost_fifo_full;
    if (cause == WireLoss::cable) ++origin.counters.lost_cable;
    if (cause == WireLoss::dead_node) ++origin.counters.lost_dead_node;
    emit(WireOutcomeKind::lost, cause, at, id, record);
}

// ---- The ideal wire

void WireModel::State::on_instant(std::uint16_t origin) {
    Node& source = nodes_[origin];
    Record& record = source.records.front();
    admit(source, record);
    source.started_words = record.end_word;
    ++source.next_record;
    std::uint16_t at = origin;
    if (!source.alive) lose(source, source.records.first(), at, WireLoss::dead_node);
    while (!record.lost) {
        if (!nodes_[at].reaches_next) {
            lose(source, source.records.first(), at, WireLoss::cable);
            break;
        }
        ++source.counters.sent;
        at = nodes_[at].next;
        if (at == origin) break;
        ++nodes_[at].counters.received;
        emit(WireOutcomeKind::arrived, WireLoss::none, at, origin, record);
    }
    if (!record.lost) {
        ++source.counters.returned;
        emit(WireOutcomeKind::returned, WireLoss::none, origin, origin, record);
    }
    source.records.pop_front();
}

// ---- Time

void WireModel::State::rebase() {
    const std::uint64_t ps = (now_ - kRebaseMargin) / kPsPerNs * kPsPerNs;
    const auto shift = [ps](std::uint64_t* time) { *time -= std::min(*time, ps); };
    base_ns_ += static_cast<std::int64_t>(ps / kPsPerNs);
    now_ -= ps;
    queue_.rebase(ps);
    for (Packet& packet : packets_) shift(&packet.start);
    for (Node& node : nodes_) {
        for (std::uint64_t* time :
             {&node.free_at, &node.open_start, &node.input_floor, &node.floor_start,
              &node.last_time, &node.last_entry, &node.own_start, &node.own_end, &node.pace,
              &node.paid_at, &node.turn_at}) {
            shift(time);
        }
        for (std::uint64_t n = node.records.first(); n != node.records.end(); ++n) {
            shift(&node.records[n].stored);
            shift(&node.records[n].entry);
        }
    }
}

}  // namespace rmem
