// SPDX-License-Identifier: Apache-2.0
// The relay's pairings of slots and places: how they begin and end, and the credit that flows back
// in them.
#include "ports/munet/relay_endpoint.hpp"
#include "rmem/base/check.hpp"

#include <algorithm>
#include <cstring>

namespace ports::munet {

Address Relay::address(const Endpoint& e) const noexcept {
    return {static_cast<std::uint16_t>(config_.node), static_cast<std::uint8_t>(e.number)};
}

Relay::Endpoint* Relay::local(Address address) const noexcept {
    return address.node == config_.node ? endpoints_[address.endpoint].get() : nullptr;
}

std::vector<bool> Relay::partners() const {
    std::vector<bool> nodes(config_.nodes, false);
    for (const Endpoint* e : active_) {
        for (const Slot& slot : e->slots) {
            if (slot.state != Slot::State::closed) nodes[slot.to.node] = true;
        }
        for (const Place& place : e->places) {
            if (place.used) nodes[place.from.node] = true;
        }
    }
    nodes[config_.node] = false;
    return nodes;
}

void Relay::ask(Endpoint& e, unsigned number, const DescriptorEntry& entry, std::uint32_t length) {
    std::uint32_t to = 0;
    Slot& slot = e.slots[number];
    if (length != sizeof to || slot.state != Slot::State::closed) {
        return e.count(Counter::bad_descriptors);
    }
    std::memcpy(&to, entry.data.data(), sizeof to);
    e.count(Counter::asked);
    slot = {.state = Slot::State::asked,
            .to = {static_cast<std::uint16_t>(to), static_cast<std::uint8_t>(to >> 16)},
            .generation = ++last_generation_ != 0 ? last_generation_ : ++last_generation_};
    if (slot.to.node >= config_.nodes) return answer(e, number, Answer::no_node, 0, 0);
    if (slot.to.node != config_.node) {
        return post(slot.to.node, {.type = FrameType::open,
                                   .endpoint = slot.to.endpoint,
                                   .source = static_cast<std::uint8_t>(e.number),
                                   .index = static_cast<std::uint8_t>(number),
                                   .generation = slot.generation,
                                   .lines = e.user});
    }
    Endpoint* const at = local(slot.to);
    std::uint8_t place = 0;
    const Answer code = admit(at, address(e), number, slot.generation, e.user, &place);
    answer(e, number, code, code == Answer::granted ? at->geometry.share() : 0, place);
}

Answer Relay::admit(Endpoint* to, Address from, unsigned slot, std::uint16_t generation,
                    std::uint32_t user, std::uint8_t* number) {
    if (to == nullptr) return Answer::no_endpoint;
    refresh(*to);
    Place* free = nullptr;
    unsigned of_user = 0;
    for (Place& place : to->places) {
        if (place.used && place.from == from) free_place(*to, place);  // one for each endpoint
        if (place.used && place.user == user) ++of_user;
        if (free == nullptr && !place.used && place.last_line <= to->head) free = &place;
    }
    const bool has_enough =
        user != to->user && of_user >= std::max<std::size_t>(1, to->places.size() / 2);
    if (free == nullptr || has_enough) {
        to->count(Counter::turned_away);
        return Answer::no_place;
    }
    RMEM_CHECK(!free->fills);
    *free = {.used = true,
             .slot = static_cast<std::uint8_t>(slot),
             .from = from,
             .generation = generation,
             .user = user};
    *number = static_cast<std::uint8_t>(free - to->places.data());
    return Answer::granted;
}

void Relay::answer(Endpoint& e, unsigned number, Answer code, std::uint32_t share,
                   std::uint8_t place) {
    Slot& slot = e.slots[number];
    const bool is_granted = code == Answer::granted;
    slot.state = is_granted ? Slot::State::open : Slot::State::closed;
    slot.place = place;
    slot.share = share;
    slot.local = is_granted ? local(slot.to) : nullptr;
    if (!is_granted) e.count(Counter::refused);
    DaemonWords& words = e.memory.daemon();
    // relaxed is enough, thrice: (1) publishes the first two; the third is read back from what only
    // the daemon writes, and if a program wrote it after all, its own wait for the answer is what
    // suffers
    words.share[number].store(share, std::memory_order_relaxed);
    words.returned[number].store(0, std::memory_order_relaxed);
    const std::uint32_t before = words.answer[number].load(std::memory_order_relaxed);
    // (1) pairs with program.cpp (5): share and returned
    words.answer[number].store(next_answer(before, code), std::memory_order_release);
    wake(e);
}

/// The pairing ends; its other side is told, and with a code (not `none`) so is the program.
void Relay::end_slot(Endpoint& e, Slot& slot, Answer code) {
    const bool was_open = slot.state == Slot::State::open;
    slot.state = Slot::State::closed;
    if (was_open && slot.local != nullptr) {
        Place& place = slot.local->places[slot.place];
        slot.local = nullptr;
        if (place.used && place.from == address(e) && place.generation == slot.generation)
            place.used = false;
    } else if (slot.to.node != config_.node && code == Answer::none) {
        post(slot.to.node, {.type = FrameType::left,
                            .endpoint = slot.to.endpoint,
                            .source = static_cast<std::uint8_t>(e.number),
                            .index = slot.place,
                            .generation = slot.generation});
    }
    if (code == Answer::none) return;
    const auto number = static_cast<unsigned>(&slot - e.slots.data());
    answer(e, number, code, 0, 0);
}

/// The sender is told that there is nobody any more; what it had begun to send in chunks will not
/// come.
void Relay::free_place(Endpoint& e, Place& place) {
    place.used = false;
    if (place.fills) {
        place.fills = false;
        show(e, place.at,
             {.mark = kRecordMark,
              .kind = Kind::none,
              .index = static_cast<std::uint8_t>(&place - e.places.data()),
              .length = place.length},
             Origin{place.from, place.generation}.word());
    }
    if (Endpoint* sender = local(place.from)) {
        Slot& slot = sender->slots[place.slot];
        if (slot.state == Slot::State::open && slot.generation == place.generation) {
            end_slot(*sender, slot, Answer::gone);
        }
    } else if (place.from.node != config_.node) {
        post(place.from.node, {.type = FrameType::gone,
                               .endpoint = place.from.endpoint,
                               .source = static_cast<std::uint8_t>(e.number),
                               .index = place.slot,
                               .generation = place.generation});
    }
}

/// The program has consumed what was sent to it: its sender may send more. By a frame of its own,
/// unless `carrier` goes to that sender anyway.
void Relay::credit(Endpoint& e, Credit credit, const Slot* carrier) {
    if (!credit.is_there || credit.place >= e.places.size() || !e.places[credit.place].used) {
        return e.count(Counter::bad_credits);
    }
    Place& place = e.places[credit.place];
    if (credit.lines - place.returned > place.delivered - place.returned) {
        return e.count(Counter::bad_credits);
    }
    place.returned = credit.lines;
    if (Endpoint* sender = local(place.from)) {
        return returned(*sender, place.slot, credit.lines);
    }
    if (carrier != nullptr && carrier->state == Slot::State::open && carrier->to == place.from) {
        carried_ = {true, place.slot, credit.lines};
        return;
    }
    post(place.from.node, {.type = FrameType::credit,
                           .endpoint = place.from.endpoint,
                           .source = static_cast<std::uint8_t>(e.number),
                           .index = place.slot,
                           .generation = place.generation,
                           .lines = credit.lines});
}

void Relay::returned(Endpoint& e, unsigned number, std::uint32_t lines) {
    Slot& slot = e.slots[number];
    if (lines - slot.returned > slot.sent - slot.returned) return;  // another node's mistake
    RMEM_CHECK(slot.sent - slot.returned <= slot.share);
    slot.returned = lines;
    // relaxed is enough: a number that says all there is to say
    e.memory.daemon().returned[number].store(lines, std::memory_order_relaxed);
    wake(e);
}

}  // namespace ports::munet
