// SPDX-License-Identifier: Apache-2.0
// The relay's dealings with other nodes.
#include "ports/munet/relay_endpoint.hpp"
#include "rmem/base/check.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ports::munet {

/// Sends a frame, or lets it wait behind those that wait already.
void Relay::post(unsigned node, const FrameHead& head, std::span<const std::byte> data) {
    const auto bytes = std::as_bytes(std::span(&head, 1));
    if (lost_[node]) return;  // its pairings are about to end
    auto& waiting = waiting_[node];
    if (waiting.empty()) {
        switch (edge_.send(node, bytes, data)) {
            case Edge::Sent::yes: return;
            case Edge::Sent::lost: lost_[node] = has_lost_ = true; return;
            case Edge::Sent::full: break;
        }
    }
    auto& frame = waiting.emplace_back(bytes.begin(), bytes.end());
    frame.insert(frame.end(), data.begin(), data.end());
    ++backlogged_;
}

bool Relay::flush() {
    bool moved = false;
    for (unsigned node = 0; node < config_.nodes; ++node) {
        auto& waiting = waiting_[node];
        for (unsigned n = 0; n < kTurnMessages && !waiting.empty() && !lost_[node]; ++n) {
            const std::span<const std::byte> frame = waiting.front();
            const Edge::Sent sent =
                edge_.send(node, frame.first(sizeof(FrameHead)), frame.subspan(sizeof(FrameHead)));
            if (sent == Edge::Sent::full) break;
            if (sent == Edge::Sent::lost) {
                lost_[node] = has_lost_ = true;
                break;
            }
            waiting.pop_front();
            --backlogged_;
            moved = true;
        }
    }
    return moved;
}

void Relay::lose_those_lost() {
    has_lost_ = false;
    for (unsigned node = 0; node < config_.nodes; ++node) {
        if (lost_[node]) lose(node);
    }
}

void Relay::lose(unsigned node) {
    if (node >= config_.nodes || node == config_.node) return;
    lost_[node] = true;  // nothing of what follows is to be told to it
    backlogged_ -= waiting_[node].size();
    waiting_[node].clear();
    for (Endpoint* e : active_) {
        for (Slot& slot : e->slots) {
            if (slot.to.node != node || slot.state == Slot::State::closed) continue;
            const bool was_open = slot.state == Slot::State::open;
            end_slot(*e, slot, was_open ? Answer::gone : Answer::no_node);
        }
        for (Place& place : e->places) {
            if (place.used && place.from.node == node) free_place(*e, place);
        }
    }
    lost_[node] = false;
    RMEM_CHECK(is_backlog_right());
}

bool Relay::is_backlog_right() const noexcept {
    std::size_t frames = 0;
    for (const auto& waiting : waiting_) frames += waiting.size();
    return frames == backlogged_;
}

void Relay::deliver(unsigned node, std::span<const std::byte> frame) {
    FrameHead head;
    if (node >= config_.nodes || node == config_.node || !read_head(frame, &head)) {
        ++bad_frames_;
        return;
    }
    const auto data = frame.subspan(sizeof head);
    Endpoint* const to = endpoints_[head.endpoint].get();
    const Address from{static_cast<std::uint16_t>(node), head.source};
    switch (head.type) {
        case FrameType::whole:
        case FrameType::first:
        case FrameType::more:
        case FrameType::last:
        case FrameType::long_first:
        case FrameType::long_more: return deliver_message(node, head, data);
        case FrameType::open: {
            std::uint8_t place = 0;
            const Answer code = admit(to, from, head.index, head.generation, head.lines, &place);
            return post(node, {.type = FrameType::answer,
                               .endpoint = head.source,
                               .source = head.endpoint,
                               .index = head.index,
                               .generation = head.generation,
                               .credit_index = place,
                               .flags = static_cast<std::uint8_t>(code),
                               .length = code == Answer::granted ? to->geometry.share() : 0});
        }
        case FrameType::answer: return deliver_answer(node, head);
        case FrameType::credit:
            if (to == nullptr) return;
            if (Slot& slot = to->slots[head.index]; slot.state == Slot::State::open &&
                                                    slot.to == from &&
                                                    slot.generation == head.generation) {
                returned(*to, head.index, head.lines);
            }
            return;
        case FrameType::gone:
            if (to == nullptr) return;
            for (Slot& slot : to->slots) {
                if (slot.state == Slot::State::open && slot.to == from &&
                    slot.generation == head.generation) {
                    end_slot(*to, slot, Answer::gone);
                }
            }
            return;
        case FrameType::left:
            if (to == nullptr || head.index >= to->places.size()) return;
            if (Place& place = to->places[head.index];
                place.used && place.from == from && place.generation == head.generation) {
                free_place(*to, place);
            }
            return;
    }
    ++bad_frames_;
}

void Relay::deliver_answer(unsigned node, const FrameHead& head) {
    Endpoint* const to = endpoints_[head.endpoint].get();
    const auto code = static_cast<Answer>(head.flags);
    Slot* const slot = to == nullptr ? nullptr : &to->slots[head.index];
    const bool is_awaited = slot != nullptr && slot->state == Slot::State::asked &&
                            slot->generation == head.generation &&
                            slot->to == Address{static_cast<std::uint16_t>(node), head.source};
    if (is_awaited) {
        const bool is_granted = code == Answer::granted && head.length >= kMinShare;
        return answer(*to, head.index, is_granted ? code : std::max(code, Answer::no_endpoint),
                      head.length, head.credit_index);
    }
    if (code != Answer::granted) return;
    post(node, {.type = FrameType::left,  // the requester has ended meanwhile
                .endpoint = head.source,
                .source = head.endpoint,
                .index = head.credit_index,
                .generation = head.generation});
}

void Relay::deliver_message(unsigned node, const FrameHead& head, std::span<const std::byte> data) {
    passes(Stage::arrived);
    Endpoint* const to = endpoints_[head.endpoint].get();
    const Address from{static_cast<std::uint16_t>(node), head.source};
    const bool is_paired = to != nullptr && head.index < to->places.size() &&
                           to->places[head.index].used && to->places[head.index].from == from &&
                           to->places[head.index].generation == head.generation;
    if (!is_paired) {
        return post(node, {.type = FrameType::gone,
                           .endpoint = head.source,
                           .source = head.endpoint,
                           .generation = head.generation});
    }
    if ((head.flags & FrameHead::kHasCredit) != 0) {
        const Slot& slot = to->slots[head.credit_index];
        if (slot.state == Slot::State::open && slot.to == from) {
            returned(*to, head.credit_index, head.lines);
        }
    }
    if (head.type == FrameType::long_first || head.type == FrameType::long_more) {
        return deliver_chunk(*to, head.index, head, data);
    }
    if (head.length != data.size() || data.size() > kInline) {
        ++bad_frames_;
        return;
    }
    place(*to, head.index, static_cast<Kind>(head.type), head.length, data.data());
}

void Relay::deliver_chunk(Endpoint& to, std::uint8_t number, const FrameHead& head,
                          std::span<const std::byte> data) {
    Place& place = to.places[number];
    if (head.type == FrameType::long_first) {
        const std::uint32_t lines = lines_of(head.length);
        if (place.fills || head.length > kMaxBuffer || lines > to.geometry.receive_lines) {
            ++bad_frames_;
            return;
        }
        place.delivered += lines;
        place.length = head.length;
        place.filled = 0;
        place.fills = reserve(to, lines, &place.at);
        if (place.fills) place.last_line = to.tail;
    }
    if (!place.fills) return;  // dropped as a whole: its program gave credit for no room
    if (data.size() > place.length - place.filled) {
        ++bad_frames_;
        return;
    }
    copy_in(to.memory, to.geometry, place.at, kHeader + place.filled, data.data(), data.size());
    place.filled += static_cast<std::uint32_t>(data.size());
    if (place.filled < place.length) return;
    place.fills = false;
    show(to, place.at,
         {.mark = kRecordMark, .kind = Kind::whole, .index = number, .length = place.length},
         Origin{place.from, place.generation}.word());
}

}  // namespace ports::munet
