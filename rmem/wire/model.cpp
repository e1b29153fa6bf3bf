// SPDX-License-Identifier: Apache-2.0
#include "rmem/wire/model.hpp"

#include "rmem/wire/state.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rmem {

using detail::kCursorBits;
using detail::kStrayBit;

WireModel::State::State(const TimingProfile& profile, std::uint32_t nodes, std::int64_t start_ns)
    : profile_(profile), base_ns_(start_ns), nodes_(nodes) {
    const auto limit = std::max<std::uint32_t>(profile.packet_bytes / std::uint32_t{kWordBytes}, 1);
    for (std::uint32_t words = 0; words <= limit; ++words) {
        tail_.push_back(packet_ps(profile, words));
    }
    gap_ = gap_ps(profile);
    packets_.reserve(64);
    retrace();
}

// ---- Input

WireSubmit WireModel::State::submit(const WireWrite& write) {
    if (write.origin >= nodes_.size() || write.bytes == 0) return WireSubmit::refused;
    Node& node = nodes_[write.origin];
    const std::uint64_t time = to_ps(write.time_ns);
    const bool late = write.time_ns < base_ns_ || time < std::max(now_, node.last_time);
    node.last_time = std::max({time, now_, node.last_time});
    const std::int64_t delay = std::max<std::int64_t>(write.extra_delay_ns, 0);

    Record record;
    record.stored = node.last_time;
    record.held_back = static_cast<std::uint64_t>(delay) * kPsPerNs;
    record.tag = write.tag;
    record.word_address = write.offset / kWordBytes;
    record.words = static_cast<std::uint32_t>(
        (write.offset % kWordBytes + write.bytes + kWordBytes - 1) / kWordBytes);
    record.interrupt = write.interrupt;
    node.records.push_back(record);
    node.submitted_words += record.words;
    ++node.counters.submitted;
    if (late) ++node.counters.clamped;

    const bool fits =
        node.unadmitted + 1 == node.records.end() &&
        (profile_.fifo_words == 0 ||
         node.submitted_words - node.started_words + tail_.size() <= profile_.fifo_words);
    if (profile_.instant == 0 && fits) admit(node, node.records.back());
    enter(write.origin, node.records.end() - 1);
    arm(write.origin);
    return late ? WireSubmit::clamped : WireSubmit::accepted;
}

void WireModel::State::run(std::int64_t until_ns, Call call, void* target) {
    if (until_ns < base_ns_) return;
    call_ = call;
    target_ = target;
    const std::uint64_t until = to_ps(until_ns);
    while (queue_.next_time() <= until) {
        const WireEvent event = queue_.pop();
        RMEM_CHECK_IF(false, event.time >= now_);
        now_ = event.time;
        handle(event);
    }
    now_ = std::max(now_, until);
    if (now_ > kRebaseAfter) rebase();
}

void WireModel::State::schedule_fault(std::uint32_t node, std::uint16_t detail,
                                      std::int64_t time_ns) {
    if (node >= nodes_.size()) return;
    push(WireEventKind::fault, to_ps(time_ns), static_cast<std::uint16_t>(node), kNoPacket, detail);
}

void WireModel::State::handle(const WireEvent& event) {
    switch (event.kind()) {
        case WireEventKind::fault: return on_fault(event);
        case WireEventKind::entry: return on_entry(event.node);
        case WireEventKind::instant: return on_instant(event.node);
        case WireEventKind::extend: return on_extend(event);
        case WireEventKind::delivery: return on_delivery(event);
        case WireEventKind::hop: return on_hop(event);
        case WireEventKind::insertion: return on_insertion(event.node);
    }
}

// ---- Own packets

void WireModel::State::arm(std::uint16_t id) {
    Node& node = nodes_[id];
    if (node.armed || node.own_packet != kNoPacket) return;
    skip_lost(node);
    if (node.next_record >= node.unadmitted) return;
    const std::uint64_t ready = node.records[node.next_record].entry + profile_.insertion_ps;
    node.armed = true;
    push(WireEventKind::insertion, std::max({ready, own_turn(node), free_at(node)}), id);
}

void WireModel::State::on_insertion(std::uint16_t id) {
    Node& node = nodes_[id];
    node.armed = false;
    note_entered(node);
    if (!node.alive) return drop_queue(id);
    skip_lost(node);
    if (!sendable(node) || now_ < own_turn(node) || now_ < free_at(node)) return arm(id);
    start_packet(id);
    arm(id);
}

void WireModel::State::start_packet(std::uint16_t id) {
    Node& node = nodes_[id];
    const std::uint32_t index = new_packet();
    Packet& packet = packets_[index];
    packet.origin = id;
    packet.start = now_;
    packet.first_word = node.started_words;
    packet.first_record = node.next_record;
    const std::uint64_t ready =
        std::max(node.records[node.next_record].entry + profile_.insertion_ps, node.pace);
    node.counters.max_insertion_wait_ns =
        std::max(node.counters.max_insertion_wait_ns, (now_ - ready) / kPsPerNs);
    ++node.counters.sent;

    do append(node, packet);
    while (may_append(node, packet));

    take_turn(node);
    const bool starved = node.next_record >= node.unadmitted || !sendable(node);
    packet.open =
        starved && packet.words + 1 < tail_.size() && !node.records[packet.last_record].interrupt;
    if (packet.open) {
        node.own_packet = index;
        ++packet.events;
        push(WireEventKind::extend, node.own_end, id, index);
    }
    occupy(node, index, now_);
    forward(index, id, now_);
}

/// PLUS: the FIFO is not empty, the next address follows, the limit is not reached, no interrupt.
bool WireModel::State::may_append(const Node& node, const Packet& packet) const noexcept {
    if (packet.words + 1 >= tail_.size() || !sendable(node)) return false;
    const Record& next = node.records[node.next_record];
    if (node.next_record == packet.last_record) return true;
    const Record& last = node.records[packet.last_record];
    return !next.interrupt && !last.interrupt && next.words != 0 &&
           node.next_record == packet.last_record + 1 &&
           next.word_address == last.word_address + last.words;
}

void WireModel::State::append(Node& node, Packet& packet) {
    Record& record = node.records[node.next_record];
    const std::uint64_t room = tail_.size() - 1 - packet.words;
    const std::uint64_t words = std::min(record.end_word - node.started_words, room);
    packet.words += static_cast<std::uint32_t>(words);
    packet.last_record = node.next_record;
    node.started_words += words;
    node.own_words = packet.words;
    node.counters.sent_words += words;
    ++record.packets;
    if (report_sent_ || std::exchange(node.report_next_sent, false))
        emit(WireOutcomeKind::sent, WireLoss::none, packet.origin, packet.origin, record);
    if (node.started_words == record.end_word) ++node.next_record;
}

/// Not when another waits behind it, whose time is fixed; not when its write is lost already, for
/// it will not be carried on where that was.
bool WireModel::State::may_grow(const Node& node, std::uint32_t index) const noexcept {
    return node.open_packet == index && !node.records[packets_[index].last_record].lost;
}

void WireModel::State::on_extend(const WireEvent& event) {
    Node& node = nodes_[event.node];
    Packet& packet = packets_[event.packet];
    note_entered(node);
    const std::uint32_t words_before = packet.words;
    if (node.alive && packet.open && may_grow(node, event.packet)) {
        while (may_append(node, packet)) append(node, packet);
    }
    if (packet.words == words_before) {
        close(node, event.packet);
        release(event.packet);
        return arm(event.node);
    }
    const std::uint64_t growth = tail_[packet.words] - tail_[words_before];
    node.paid_at += growth;
    node.turn_at += growth;
    node.pace += growth;
    node.own_end += growth;
    push(WireEventKind::extend, node.own_end, event.node, event.packet);
}

/// From now on the packet's length is known to every link that it is on.
void WireModel::State::close(Node& node, std::uint32_t index) {
    Packet& packet = packets_[index];
    packet.open = false;
    if (node.own_packet == index) node.own_packet = kNoPacket;
    for (Node& other : nodes_) {
        if (other.floor_packet == index) {
            other.input_floor = input_floor(other);
            other.floor_packet = kNoPacket;
        }
        if (other.open_packet != index) continue;
        const std::uint64_t end = other.open_start + tail_[packet.words];
        if (&other != &node) other.paid_at += end - other.free_at;
        other.free_at = end;
        other.open_packet = kNoPacket;
    }
}

// ---- Passing packets

std::uint64_t WireModel::State::free_at(const Node& node) const noexcept {
    if (node.open_packet == kNoPacket) return node.free_at;
    return node.open_start + tail_[packets_[node.open_packet].words];
}

void WireModel::State::occupy(Node& node, std::uint32_t index, std::uint64_t leave) {
    const Packet& packet = packets_[index];
    node.free_at = leave + tail_[packet.words];
    node.open_packet = packet.open ? index : kNoPacket;
    node.open_start = leave;
}

std::uint64_t WireModel::State::input_floor(const Node& node) const noexcept {
    if (node.floor_packet == kNoPacket) return node.input_floor;
    return std::max(node.input_floor, node.floor_start + tail_[packets_[node.floor_packet].words]);
}

/// Packets that come to `next` from now on stay behind this one, whose head is through it then.
void WireModel::State::follow(Node& next, std::uint32_t index, std::uint64_t head) {
    const Packet& packet = packets_[index];
    next.input_floor = std::max(input_floor(next), head + tail_[packet.words]);
    next.floor_packet = packet.open ? index : kNoPacket;
    next.floor_start = head;
}

void WireModel::State::on_hop(const WireEvent& event) {
    Packet& packet = packets_[event.packet];
    Node& node = nodes_[event.node];
    if (event.node == packet.origin) {
        ++node.counters.removed_by_source;
    } else if (++packet.age > profile_.max_age) {
        ++node.counters.aged_out;
        lose_rest(event.packet, packet.first_record, event.node);
    } else {
        const std::uint64_t leave = std::max(now_, free_at(node));
        ++node.counters.passed;
        give_way(node, packet, leave);
        occupy(node, event.packet, leave);
        forward(event.packet, event.node, leave);
    }
    release(event.packet);
}

/// Each packet on the link costs its slot and the gap, and own packets wait until all is paid: so
/// one transmitter keeps its pitch, and N saturating ones get together what one gets. But nobody
/// waits longer than one turn of each origin seen since the own packet before last: so those N get
/// equal shares, and a newcomer gets in at once, however long others have been sending.
void WireModel::State::give_way(Node& node, const Packet& packet, std::uint64_t leave) {
    const std::size_t word = packet.origin / 64u;
    const std::uint64_t bit = std::uint64_t{1} << (packet.origin % 64u);
    const std::uint64_t cost = tail_[packet.words] + gap_;
    node.paid_at = std::max(node.paid_at, leave) + cost;
    if ((node.seen[word] & bit) != 0) return;
    node.seen[word] |= bit;
    node.seen_cost += cost;
    if ((node.seen_before[word] & bit) == 0) node.turn_at += cost;
}

void WireModel::State::take_turn(Node& node) {
    const std::uint64_t most = now_ + node.seen_cost;
    node.paid_at = std::clamp(node.paid_at, now_, most) + tail_[node.own_words] + gap_;
    node.own_start = now_;
    node.own_end = now_ + tail_[node.own_words];
    node.pace = node.own_end + gap_;
    node.turn_at = node.pace + node.seen_cost;
    node.seen_before = node.seen;
    node.seen.fill(0);
    node.seen_cost = 0;
}

/// Sends a packet on to the next live node; returns when its head will have passed that one.
std::uint64_t WireModel::State::forward(std::uint32_t index, std::uint16_t from,
                                        std::uint64_t leave, std::uint16_t cursor) {
    const Node& node = nodes_[from];
    Packet& packet = packets_[index];
    if (!node.reaches_next) {
        lose_rest(index, packet.first_record + cursor, from);
        return now_;
    }
    Node& next = nodes_[node.next];
    if (!nodes_[packet.origin].alive && from != packet.origin &&
        distance(packet.origin, node.next) <= distance(packet.origin, from)) {
        packet.circled = true;
    }
    std::uint64_t ready = leave + node.path_ps + profile_.node_delay_ps;
    if (const std::uint64_t floor = input_floor(next); ready < floor) {
        ready = floor;
        follow(next, index, ready);
    }
    ++packet.events;
    push(WireEventKind::hop, ready, node.next, index);
    expect(index, node.next, ready - profile_.node_delay_ps,
           packet.circled ? cursor | kStrayBit : cursor);
    return ready;
}

/// Awaits the end of the write that `detail` counts, if it ends in this packet.
void WireModel::State::expect(std::uint32_t index, std::uint16_t id, std::uint64_t head,
                              std::uint16_t detail) {
    Packet& packet = packets_[index];
    const std::uint64_t number = packet.first_record + (detail & kCursorBits);
    if (number > packet.last_record) return;
    const Record& record = nodes_[packet.origin].records[number];
    const std::uint64_t words = record.end_word - packet.first_word;
    if (words > packet.words) return;
    ++packet.events;
    push(WireEventKind::delivery, head + tail_[words], id, index, detail);
}

/// What becomes of a write at the node where its end arrives; nothing if the node lacks the write.
std::optional<WireOutcomeKind> WireModel::State::kind_of(const WireEvent& delivery) const noexcept {
    const Packet& packet = packets_[delivery.packet];
    const Record& record =
        nodes_[packet.origin].records[packet.first_record + (delivery.detail & kCursorBits)];
    const bool reaches = distance(packet.origin, delivery.node) <= record.reaches;
    if (!nodes_[delivery.node].alive || !reaches) return std::nullopt;
    if ((delivery.detail & kStrayBit) != 0) return WireOutcomeKind::stray;
    return delivery.node == packet.origin ? WireOutcomeKind::returned : WireOutcomeKind::arrived;
}

/// What is in its lane is certain until a fault, which is not in a lane.
std::optional<WireOutcome> WireModel::State::next_arrival(std::uint32_t node, std::uint32_t origin,
                                                          std::int64_t until_ns) const noexcept {
    const WireEvent* next = queue_.find_delivery(to_ps(until_ns), [&](const WireEvent& event) {
        const bool is_meant = event.node == node || packets_[event.packet].origin == origin;
        return is_meant && kind_of(event) == WireOutcomeKind::arrived;
    });
    if (next == nullptr) return std::nullopt;
    const Packet& packet = packets_[next->packet];
    const Record& record =
        nodes_[packet.origin].records[packet.first_record + (next->detail & kCursorBits)];
    return outcome_at(next->time, WireOutcomeKind::arrived, WireLoss::none, next->node,
                      packet.origin, record);
}

void WireModel::State::on_delivery(const WireEvent& event) {
    const Packet& packet = packets_[event.packet];
    const Node& origin = nodes_[packet.origin];
    Node& node = nodes_[event.node];
    const Record& record = origin.records[packet.first_record + (event.detail & kCursorBits)];
    if (const auto kind = kind_of(event)) {
        if (*kind == WireOutcomeKind::returned) ++node.counters.returned;
        if (*kind == WireOutcomeKind::arrived) ++node.counters.received;
        emit(*kind, WireLoss::none, event.node, packet.origin, record);
    }
    const std::uint64_t head = now_ - tail_[record.end_word - packet.first_word];
    expect(event.packet, event.node, head, static_cast<std::uint16_t>(event.detail + 1));
    release(event.packet);
}

// ---- Beginning and end of packets and records

std::uint32_t WireModel::State::new_packet() {
    if (free_packets_.empty()) {
        packets_.emplace_back();
        return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t index = free_packets_.back();
    free_packets_.pop_back();
    packets_[index] = Packet();
    return index;
}

void WireModel::State::release(std::uint32_t index) {
    Packet& packet = packets_[index];
    RMEM_CHECK_IF(false, packet.events != 0);
    if (--packet.events != 0) return;
    Node& origin = nodes_[packet.origin];
    for (std::uint64_t n = packet.first_record; n <= packet.last_record; ++n) {
        RMEM_CHECK_IF(false, origin.records[n].packets != 0);
        --origin.records[n].packets;
    }
    free_packets_.push_back(index);
    drop_finished(origin);
}

void WireModel::State::drop_finished(Node& node) {
    while (node.records.first() < node.next_record && node.records.front().packets == 0) {
        node.records.pop_front();
    }
}

// ---- The public face

WireCounters& WireCounters::operator+=(const WireCounters& c) noexcept {
    submitted += c.submitted;
    clamped += c.clamped;
    sent += c.sent;
    sent_words += c.sent_words;
    passed += c.passed;
    received += c.received;
    returned += c.returned;
    removed_by_source += c.removed_by_source;
    aged_out += c.aged_out;
    lost_fifo_full += c.lost_fifo_full;
    lost_cable += c.lost_cable;
    lost_dead_node += c.lost_dead_node;
    held_off += c.held_off;
    retransmitted += c.retransmitted;
    switch_overs += c.switch_overs;
    bypasses += c.bypasses;
    max_fifo_words = std::max(max_fifo_words, c.max_fifo_words);
    max_insertion_wait_ns = std::max(max_insertion_wait_ns, c.max_insertion_wait_ns);
    return *this;
}

WireModel::WireModel(const TimingProfile& profile, std::uint32_t nodes, std::int64_t start_ns) {
    if (nodes < 1 || nodes > kMaxNodes) {
        throw Error(Errc::bad_node_count, "a modelled ring has 1 to " + std::to_string(kMaxNodes) +
                                              " nodes, not " + std::to_string(nodes));
    }
    state_ = std::make_unique<State>(profile, nodes, start_ns);
}

WireModel::~WireModel() = default;
WireModel::WireModel(WireModel&&) noexcept = default;
WireModel& WireModel::operator=(WireModel&&) noexcept = default;

WireSubmit WireModel::submit(const WireWrite& write) {
    return state_->submit(write);
}

void WireModel::run(std::int64_t until_ns, Call call, void* target) {
    state_->run(until_ns, call, target);
}

std::int64_t WireModel::next_word_ns(std::uint32_t node) const noexcept {
    return node < nodes() ? state_->next_word_ns(state_->nodes()[node]) : kNever;
}

void WireModel::report_next_sent(std::uint32_t node) noexcept {
    if (node < nodes()) state_->report_next_sent(node);
}

void WireModel::report_sent(bool on) noexcept {
    state_->report_sent(on);
}

std::int64_t WireModel::now_ns() const noexcept {
    return state_->now_ns();
}
std::int64_t WireModel::next_time_ns() const noexcept {
    return state_->next_time_ns();
}

std::optional<WireOutcome> WireModel::next_arrival(std::uint32_t node, std::uint32_t origin,
                                                   std::int64_t until_ns) const noexcept {
    return state_->next_arrival(node, origin, until_ns);
}

std::uint32_t WireModel::fifo_occupancy(std::uint32_t node) const noexcept {
    return node < nodes() ? state_->occupancy(state_->nodes()[node]) : 0;
}

std::int64_t WireModel::room_at(std::uint32_t node, std::uint32_t words) const noexcept {
    return node < nodes() ? state_->room_at(state_->nodes()[node], words) : kNever;
}

void WireModel::set_alive(std::uint32_t node, bool alive, std::int64_t time_ns) {
    state_->schedule_fault(node, alive ? State::kRevives : State::kDies, time_ns);
}

void WireModel::set_cable(std::uint32_t ring, std::uint32_t from_node, bool up,
                          std::int64_t time_ns) {
    if (ring > 1) return;
    const std::uint32_t detail = State::kCable + 2 * ring + (up ? 1 : 0);
    state_->schedule_fault(from_node, static_cast<std::uint16_t>(detail), time_ns);
}

std::uint32_t WireModel::nodes() const noexcept {
    return static_cast<std::uint32_t>(state_->nodes().size());
}

const TimingProfile& WireModel::profile() const noexcept {
    return state_->profile();
}

WireCounters WireModel::counters(std::uint32_t node) const noexcept {
    return node < nodes() ? state_->nodes()[node].counters : WireCounters();
}

WireCounters WireModel::totals() const noexcept {
    WireCounters sum;
    for (const detail::WireNode& node : state_->nodes()) sum += node.counters;
    return sum;
}

}  // namespace rmem
