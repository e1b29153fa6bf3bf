// SPDX-License-Identifier: Apache-2.0
// The relay's turns: what programs ask for by their descriptors.
#include "ports/munet/relay.hpp"

#include "ports/munet/relay_endpoint.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/fence.hpp"

#include <algorithm>
#include <cstring>

namespace ports::munet {

Relay::Relay(RelayConfig config, Edge& edge)
    : config_(config), edge_(edge), waiting_(config.nodes), lost_(config.nodes, false) {}

Relay::~Relay() = default;

int Relay::open(std::span<std::byte> memory, const Geometry& geometry, std::uint32_t user,
                std::span<rmem::Counters> counters) {
    const auto free = std::find(endpoints_.begin(), endpoints_.end(), nullptr);
    if (free == endpoints_.end()) return -1;
    auto e = std::make_unique<Endpoint>();
    e->number = static_cast<unsigned>(free - endpoints_.begin());
    e->user = user;
    e->geometry = geometry;
    e->memory = EndpointMemory(memory, geometry);
    e->counters = &counters[std::min<std::size_t>(e->number, counters.size() - 1)];
    e->next = e->memory.descriptors();
    e->places.resize(geometry.senders);
    active_.push_back(e.get());
    *free = std::move(e);
    return static_cast<int>(active_.back()->number);
}

void Relay::close(unsigned endpoint) {
    Endpoint& e = *endpoints_[endpoint];
    for (unsigned i = 0; i < kDescriptors; ++i) {
        while (e.moving.active) go_on_moving(e);
        // (1) pairs with the program's release, program.cpp (1): the descriptor's other words
        const std::uint64_t word = e.next->control.load(std::memory_order_acquire);
        if (Control::of(word).mark != e.mark) break;
        act(e, Control::of(word), *e.next);
        if (!e.moving.active) advance(e);
    }
    if (e.moving.active) abandon_move(e);
    for (Slot& slot : e.slots) {
        if (slot.state == Slot::State::open) end_slot(e, slot, Answer::none);
        slot.state = Slot::State::closed;
    }
    for (Place& place : e.places) {
        if (place.used) free_place(e, place);
    }
    active_.erase(std::find(active_.begin(), active_.end(), &e));
    endpoints_[endpoint].reset();
}

bool Relay::turn() {
    bool moved = false;
    for (Endpoint* e : active_) {
        if (e->moving.active) [[unlikely]] {
            moved |= go_on_moving(*e);
            continue;
        }
        // (2) pairs with the program's release, program.cpp (1): the descriptor's other words
        const std::uint64_t word = e->next->control.load(std::memory_order_acquire);
        if (Control::of(word).mark == e->mark) moved |= take(*e, word);
    }
    if (backlogged_ != 0) [[unlikely]]
        moved |= flush();
    if (has_lost_) [[unlikely]]
        lose_those_lost();
    return moved;
}

bool Relay::take(Endpoint& e, std::uint64_t word) {
    passes(Stage::detected);
    for (unsigned n = 1;; ++n) {
        act(e, Control::of(word), *e.next);
        if (e.moving.active) {
            go_on_moving(e);
            break;
        }
        advance(e);
        if (n == kTurnMessages) break;
        // (3) pairs with the program's release, program.cpp (1): the descriptor's other words
        word = e.next->control.load(std::memory_order_acquire);
        if (Control::of(word).mark != e.mark) break;
    }
    wake(e);
    return true;
}

void Relay::advance(Endpoint& e) {
    ++e.taken;
    if (++e.next_index == kDescriptors) {
        e.next_index = 0;
        e.mark ^= 3;
        e.next = e.memory.descriptors();
    } else {
        ++e.next;
    }
    // (4) pairs with program.cpp (3) and program.cpp (6): the descriptor has been read, it may be
    // written again
    e.memory.daemon().taken.store(e.taken, std::memory_order_release);
}

void Relay::act(Endpoint& e, Control control, const DescriptorEntry& entry) {
    switch (control.kind) {
        case Kind::whole:
        case Kind::first:
        case Kind::more:
        case Kind::last: return message(e, control, entry);
        case Kind::moved: return begin_move(e, control, entry);
        case Kind::open: return ask(e, control.index, entry, control.length);
        case Kind::credit:
            e.count(Counter::credits);
            return credit(e, Credit::of(entry.credit), nullptr);
        case Kind::none: break;
    }
    e.count(Counter::bad_descriptors);
}

/// Whether the slot may have `lines` more lines under way.
bool Relay::spend(Endpoint& e, Slot& slot, std::uint32_t lines) {
    if (slot.state != Slot::State::open) [[unlikely]] {
        e.count(slot.generation != 0 ? Counter::undelivered : Counter::forged);
        return false;
    }
    if (slot.sent + lines - slot.returned > slot.share) [[unlikely]] {
        e.count(Counter::over_credit);
        return false;
    }
    slot.sent += lines;
    RMEM_CHECK_IF(false, slot.sent - slot.returned <= slot.share);
    return true;
}

void Relay::message(Endpoint& e, Control control, const DescriptorEntry& entry) {
    if (control.length > kInline) [[unlikely]]
        return e.count(Counter::bad_descriptors);
    Slot& slot = e.slots[control.index];
    if (const std::uint64_t word = entry.credit; word != 0) credit(e, Credit::of(word), &slot);
    if (!spend(e, slot, lines_of(control.length))) [[unlikely]]
        return;
    e.count(Counter::sent);
    e.count(Counter::sent_bytes, control.length);
    if (slot.local != nullptr) [[likely]]
        return place(*slot.local, slot.place, control.kind, control.length, entry.data.data());
    passes(Stage::header_sent);
    post(slot.to.node, message_head(e, slot, static_cast<FrameType>(control.kind), control.length),
         {entry.data.data(), control.length});
    passes(Stage::data_sent);
}

FrameHead Relay::message_head(Endpoint& e, const Slot& slot, FrameType type, std::uint32_t length) {
    FrameHead head{.type = type,
                   .endpoint = slot.to.endpoint,
                   .source = static_cast<std::uint8_t>(e.number),
                   .index = slot.place,
                   .generation = slot.generation,
                   .length = length};
    if (carried_.is_there) {
        head.flags = FrameHead::kHasCredit;
        head.credit_index = carried_.place;
        head.lines = carried_.lines;
        carried_.is_there = false;
    }
    return head;
}

// ---- Messages in the send buffer

void Relay::begin_move(Endpoint& e, Control control, const DescriptorEntry& entry) {
    std::uint64_t offset = 0;
    std::memcpy(&offset, entry.data.data(), sizeof offset);
    if (control.length > e.geometry.send_bytes || offset > e.geometry.send_bytes - control.length) {
        return e.count(Counter::bad_descriptors);
    }
    Slot& slot = e.slots[control.index];
    if (const std::uint64_t word = entry.credit; word != 0) credit(e, Credit::of(word), &slot);
    if (!spend(e, slot, lines_of(control.length))) return;
    e.moving = {.active = true,
                .slot = control.index,
                .generation = slot.generation,
                .offset = static_cast<std::uint32_t>(offset),
                .length = control.length,
                .moved = 0,
                .at = 0};
    e.count(Counter::sent);
    e.count(Counter::sent_bytes, control.length);
    e.count(Counter::moved);
    if (slot.local == nullptr) return;
    Place& at = slot.local->places[slot.place];
    const std::uint32_t lines = lines_of(control.length);
    e.moving.active = reserve(*slot.local, lines, &e.moving.at);
    at.delivered += lines;
    at.last_line = slot.local->tail;
}

bool Relay::go_on_moving(Endpoint& e) {
    auto& m = e.moving;
    Slot& slot = e.slots[m.slot];
    if (slot.state != Slot::State::open ||
        slot.generation != m.generation) {  // the destination is gone
        e.count(Counter::undelivered);
        m.active = false;
        advance(e);
        return true;
    }
    const std::uint32_t bytes =
        std::min(m.length - m.moved, static_cast<std::uint32_t>(kTurnBytes));
    const std::byte* from = e.memory.send_buffer() + m.offset + m.moved;
    if (slot.local != nullptr) {
        copy_in(slot.local->memory, slot.local->geometry, m.at, kHeader + m.moved, from, bytes);
    } else {
        for (std::uint32_t done = 0; done < bytes || m.length == 0;
             done += static_cast<std::uint32_t>(config_.chunk)) {
            const bool is_first = m.moved == 0 && done == 0;
            if (is_first) passes(Stage::header_sent);
            post(slot.to.node,
                 message_head(e, slot, is_first ? FrameType::long_first : FrameType::long_more,
                              m.length),
                 {from + done, std::min<std::size_t>(config_.chunk, bytes - done)});
            if (m.length == 0) break;
        }
    }
    m.moved += bytes;
    if (m.moved < m.length) return true;
    m.active = false;
    if (slot.local != nullptr) {
        show(*slot.local, m.at,
             {.mark = kRecordMark, .kind = Kind::whole, .index = slot.place, .length = m.length},
             Origin{address(e), slot.generation}.word());
    } else {
        passes(Stage::data_sent);
    }
    advance(e);
    return true;
}

/// What was to be moved will not come: its place in the receive buffer says so.
void Relay::abandon_move(Endpoint& e) {
    Slot& slot = e.slots[e.moving.slot];
    e.moving.active = false;
    if (slot.state != Slot::State::open || slot.generation != e.moving.generation ||
        slot.local == nullptr)
        return;
    show(*slot.local, e.moving.at,
         {.mark = kRecordMark, .kind = Kind::none, .index = slot.place, .length = e.moving.length},
         Origin{address(e), slot.generation}.word());
}

// ---- Receive buffers

/// Reads how far its program is, believing it only what can be.
void Relay::refresh(Endpoint& to) {
    // (5) pairs with program.cpp (4): the lines have been read, they may be written again
    const std::uint64_t head = to.memory.program().consumed.load(std::memory_order_acquire);
    if (head - to.head > to.tail - to.head) return to.count(Counter::bad_consumed);
    to.head = head;
}

inline std::uint32_t Relay::next_line(const Endpoint& to) noexcept {
    return to.tail_at + 1 == to.geometry.receive_lines ? 0 : to.tail_at + 1;
}

/// Readers find the end at this line, until a record is shown there.
inline void Relay::end_at(Endpoint& to, std::uint32_t line) noexcept {
    // relaxed is enough: the record before it publishes it (6)
    to.memory.record(line).control.store(0, std::memory_order_relaxed);
}

bool Relay::reserve(Endpoint& to, std::uint32_t lines, std::uint32_t* at) {
    if (to.tail + lines + kAhead - to.head > to.geometry.receive_lines) [[unlikely]] {
        refresh(to);
        if (to.tail + lines + kAhead - to.head > to.geometry.receive_lines) {
            to.count(Counter::no_room);
            return false;
        }
    }
    *at = to.tail_at;
    to.tail += lines;
    RMEM_CHECK_IF(false, to.tail - to.head + kAhead <= to.geometry.receive_lines);
    to.tail_at += lines;
    if (to.tail_at >= to.geometry.receive_lines) to.tail_at -= to.geometry.receive_lines;
    // A longer record may be shown after those behind it. A short one is shown at once, and finds
    // the first of the two done.
    if (lines > 1) {
        end_at(to, to.tail_at);
        end_at(to, next_line(to));
    }
    return true;
}

void Relay::show(Endpoint& to, std::uint32_t at, Control control, std::uint64_t origin) {
    RecordHead& record = to.memory.record(at);
    record.origin = origin;
    // (6) pairs with program.cpp (2): the record's bytes, and the zero behind it
    record.control.store(control.word(), std::memory_order_release);
    end_at(to, next_line(to));
    passes(Stage::in_host_memory);
    to.count(Counter::received);
    to.count(Counter::received_bytes, control.length);
    wake(to);
}

void Relay::place(Endpoint& to, std::uint8_t number, Kind kind, std::uint32_t length,
                  const std::byte* data) {
    Place& place = to.places[number];
    const std::uint32_t lines = lines_of(length);
    std::uint32_t at = 0;
    place.delivered += lines;
    if (!reserve(to, lines, &at)) [[unlikely]]
        return;
    place.last_line = to.tail;
    if (length <= kNear) [[likely]] {
        rmem::copy_short(to.memory.line(at) + kHeader, data, length);
    } else {
        copy_in(to.memory, to.geometry, at, kHeader, data, length);
    }
    show(to, at, {.mark = kRecordMark, .kind = kind, .index = number, .length = length},
         Origin{place.from, place.generation}.word());
}

void Relay::wake(Endpoint& e) {
    rmem::light_fence();
    // relaxed is enough: the fence orders this load after the stores before it
    if (e.memory.program().sleeps.load(std::memory_order_relaxed) != 0) [[unlikely]]
        edge_.wake(e.number);
}

}  // namespace ports::munet
