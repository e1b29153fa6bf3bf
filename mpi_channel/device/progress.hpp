// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What comes, and who has died. Part of Device (mpi_channel/device/device.hpp).

#include "billboard/bbp.h"
#include "mpi_channel/device/device.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

namespace mpi_channel {

inline constexpr unsigned kPollsPerLook = 1024;  ///< empty ones between looks for the dead

// ---- What comes ---------------------------------------------------------------------------------

template <class T>
bool Device<T>::progress(unsigned packets) {
    bool any = false;
    for (; packets > 0 && take_one(); --packets) any = true;
    for (std::size_t i = waiting_.size(); i-- > 0;) {
        const unsigned to = waiting_[i];
        if (!pump(to)) continue;
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), to));
        any = true;
    }
    any |= read_some();
    if (any) {
        empty_polls_ = 0;
    } else if (++empty_polls_ % kPollsPerLook == 0) {
        look_for_the_dead();
    }
    return any;
}

template <class T>
bool Device<T>::take_one() {
    Bytes bytes;
    unsigned from = 0;
    const int result = transport_.recv_any_control(&bytes, &from);
    if (result == BBP_OK) {
        if (!others_[from].broken) take_packet(from, bytes);
        return true;
    }
    if (result == kBulk) {
        on_bulk(from);
        return true;
    }
    if (result == BBP_ESIZE) break_off(from);
    return result == BBP_ESIZE;
}

/// Without memory for what it sends, its sender cannot be heard any more.
template <class T>
void Device<T>::take_packet(unsigned from, Bytes bytes) {
    try {
        on_packet(from, bytes);
    } catch (const std::bad_alloc&) {
        break_off(from);
    } catch (const std::length_error&) {
        break_off(from);
    }
}

template <class T>
void Device<T>::on_packet(unsigned from, Bytes bytes) {
    const auto packet = read(bytes);
    Other& other = others_[from];
    if (!packet || packet->header.credit > kCredit - other.credit) return break_off(from);
    other.credit += packet->header.credit;
    bool is_sound = true;
    switch (packet->header.type) {
        case PacketType::short_message:
            is_sound = on_message(from, *packet, bytes.last(packet->size));
            break;
        case PacketType::long_message: is_sound = on_message(from, *packet, {}); break;
        case PacketType::request_send: on_request(from, *packet); break;
        case PacketType::ok_to_send: is_sound = on_ok_to_send(from, *packet); break;
        case PacketType::data: is_sound = on_data(from, *packet); break;
        case PacketType::flow: break;
        case PacketType::bundle: is_sound = on_bundle(from, bytes.last(packet->size)); break;
        case PacketType::group_message:
        case PacketType::group_flow: is_sound = on_group(from, *packet, bytes); break;
        case PacketType::request_get: on_request(from, *packet); break;
        case PacketType::done_get: is_sound = on_done_get(from, *packet); break;
        case PacketType::remote:
            is_sound = on_remote(from, *packet, bytes.last(packet->size));
            break;
    }
    if (!is_sound) break_off(from);
}

template <class T>
bool Device<T>::on_group(unsigned from, const Packet& packet, Bytes bytes) {
    if (groups_ == nullptr) return true;
    const PacketHeader& header = packet.header;
    if (header.type == PacketType::group_message)
        return groups_->on_group_message(from, header.data, header.tag, bytes.last(packet.size));
    groups_->on_group_flow(from, header.data, header.tag);
    return true;
}

/// A short message, or the beginning of an eager one.
template <class T>
bool Device<T>::on_message(unsigned from, const Packet& packet, Bytes bytes) {
    const bool is_long = packet.header.type == PacketType::long_message;
    if (packet.size > (is_long ? kEagerMost : transport_.packet_most())) return false;
    others_[from].held += cost_of(packet.size);
    if (others_[from].held > kCredit) return false;
    const Envelope envelope{from, packet.header.tag, packet.size};
    const auto data = packet.header.has_data ? std::optional(packet.header.data) : std::nullopt;
    Delivery* delivery = nullptr;
    Unexpected* kept = nullptr;
    if (const auto match = matcher(packet.header.untagged).arrive(envelope)) {
        auto& receive = static_cast<WaitingReceive&>(*match->receive);
        if (bytes.size() == packet.size) {
            take_whole(receive, match->placement, envelope, data, bytes);
            return true;
        }
        delivery = &deliver(receive, match->placement, envelope, data);
        delivery->cost = cost_of(packet.size);
    } else {
        kept = &keep(from, packet);
    }
    if (bytes.size() < packet.size) {
        begin_bulk(from, delivery, kept, packet.size);
    } else {
        std::copy(bytes.begin(), bytes.end(), kept->bytes.begin());
        kept->come = bytes.size();
    }
    return true;
}

/// The usual case, for which no delivery is noted down.
template <class T>
void Device<T>::take_whole(WaitingReceive& receive, const Placement& placement,
                           const Envelope& envelope, std::optional<std::uint32_t> data,
                           Bytes bytes) {
    receive.over |= placement.last;
    copy_in(receive.order.parts, placement.at, bytes.first(placement.bytes));
    give_back(envelope.source, cost_of(envelope.size));
    tell_received(receive, placement, envelope, data, Status::ok);
}

inline std::optional<std::uint64_t> address_in(const Packet& packet) noexcept {
    return packet.header.type == PacketType::request_get ? std::optional(packet.address)
                                                         : std::nullopt;
}

template <class T>
Unexpected& Device<T>::keep(unsigned from, const Packet& packet) {
    Unexpected& message = messages_.take();
    message.envelope = {from, packet.header.tag, packet.size};
    message.untagged = packet.header.untagged;
    if (packet.header.has_data) message.data = packet.header.data;
    message.is_rendezvous = packet.header.type == PacketType::request_send ||
                            packet.header.type == PacketType::request_get;
    message.send = packet.send;
    message.address = address_in(packet);
    if (!message.is_rendezvous) message.bytes.resize(packet.size);
    matcher(message.untagged).keep(message);
    ++counters_.unexpected;
    return message;
}

template <class T>
void Device<T>::on_request(unsigned from, const Packet& packet) {
    const Envelope envelope{from, packet.header.tag, packet.size};
    const auto data = packet.header.has_data ? std::optional(packet.header.data) : std::nullopt;
    if (const auto match = matcher(packet.header.untagged).arrive(envelope)) {
        accept(from, packet.send, address_in(packet),
               deliver(static_cast<WaitingReceive&>(*match->receive), match->placement, envelope,
                       data));
    } else {
        keep(from, packet);
    }
}

template <class T>
bool Device<T>::on_ok_to_send(unsigned from, const Packet& packet) {
    Send* send = sends_.find(packet.send);
    if (send == nullptr || send->order.to != from || !send->asked) return false;
    send->asked = false;
    if (send->offered) {
        others_[from].cannot_read = true;
        ++counters_.gets_refused;
    }
    Packet answer;
    answer.header.type = PacketType::data;
    answer.receive = packet.receive;
    enqueue_packet(from, answer, send);
    return true;
}

template <class T>
bool Device<T>::on_data(unsigned from, const Packet& packet) {
    Delivery* delivery = deliveries_.find(packet.receive);
    if (delivery == nullptr || delivery->envelope.source != from || !delivery->is_awaited)
        return false;
    delivery->is_awaited = false;
    if (delivery->envelope.size == 0) {
        end_delivery(*delivery, Status::ok);
    } else {
        begin_bulk(from, delivery, nullptr, delivery->envelope.size);
    }
    return true;
}

template <class T>
void Device<T>::begin_bulk(unsigned from, Delivery* delivery, Unexpected* kept, std::size_t size) {
    Other& other = others_[from];
    other.delivery = delivery;
    other.kept = kept;
    other.bulk_left = size;
    transport_.expect_bulk(from, size);
}

/// All that is here of it.
template <class T>
void Device<T>::on_bulk(unsigned from) {
    Other& other = others_[from];
    while (other.bulk_left != 0) {
        std::size_t size = 0;
        const int result = transport_.recv_from_channel(room_for_bulk(from), from, &size);
        if (result != BBP_OK || size == 0) return;
        other.bulk_left -= size;
        if (other.delivery != nullptr) other.delivery->come += size;
        if (other.kept != nullptr) other.kept->come += size;
        if (other.remote) other.remote->come += size;
    }
    if (!other.broken) end_bulk(from);
}

/// Where the next bytes go; what is cut, or of a rank that was given up, goes nowhere.
template <class T>
std::span<std::byte> Device<T>::room_for_bulk(unsigned from) {
    const Other& other = others_[from];
    std::span<std::byte> room(scratch_);
    if (other.remote) {
        room = room_for_remote(from);
    } else if (other.kept != nullptr) {
        room = std::span(other.kept->bytes).subspan(other.kept->come);
    } else if (const Delivery* delivery = other.delivery) {
        const std::size_t wanted = delivery->placement.bytes;
        if (delivery->come < wanted) {
            for_each_stretch(delivery->receive->order.parts,
                             delivery->placement.at + delivery->come, wanted - delivery->come,
                             [&](std::byte* to, std::size_t count) {
                                 room = {to, count};
                                 return false;
                             });
        }
    }
    return room.first(std::min(room.size(), other.bulk_left));
}

template <class T>
void Device<T>::end_bulk(unsigned from) {
    Other& other = others_[from];
    if (other.remote) return end_remote_bulk(from);
    Delivery* const delivery = std::exchange(other.delivery, nullptr);
    Unexpected* const kept = std::exchange(other.kept, nullptr);
    if (delivery != nullptr) {
        if (delivery->cost != 0) give_back(delivery->envelope.source, delivery->cost);
        end_delivery(*delivery, Status::ok);
    } else if (kept != nullptr && kept->delivery != nullptr) {
        end_kept(*kept, *static_cast<Delivery*>(kept->delivery));
    }
}

// ---- Deaths -------------------------------------------------------------------------------------

/// Of one rank at a time: what it had sent before comes first.
template <class T>
void Device<T>::look_for_the_dead() {
    next_look_ = (next_look_ + 1) % transport_.ranks();
    const Other& other = others_[next_look_];
    if (other.gone || next_look_ == transport_.rank()) return;
    const int next = transport_.ask_for(next_look_);
    if (next == BBP_EPEER || (other.unreachable && next == BBP_EAGAIN)) lose(next_look_);
}

/// What was to be sent to it ends; what it sent may still come.
template <class T>
void Device<T>::stop_sending(unsigned to) {
    Other& other = others_[to];
    other.unreachable = true;
    other.backlog.clear();
    sends_.for_each([&](Send& send) {
        if (send.order.to == to) end_send(send, Status::gone);
    });
    stop_access(to);
}

template <class T>
void Device<T>::lose(unsigned rank) {
    Other& other = others_[rank];
    other.gone = true;
    ++gone_;
    stop_sending(rank);
    if (other.kept != nullptr) other.kept->is_hopeless = true;
    other.delivery = nullptr;
    other.kept = nullptr;
    other.remote.reset();
    end_receives_from(rank);
    if (is_hopeless(kAnySource)) end_receives_from(kAnySource);
    // What was on its way, and what only asked to be sent, will not come.
    messages_.for_each([&](Unexpected& message) {
        if (message.envelope.source != rank) return;
        if (!message.is_rendezvous && !message.is_hopeless) return;
        // One that was claimed is its claimer's until it is received or discarded.
        if (!message.unexpected && message.delivery == nullptr) return;
        if (message.unexpected) matcher(message.untagged).claim(message);
        messages_.give(message);
    });
    deliveries_.for_each([&](Delivery& delivery) {
        if (delivery.envelope.source == rank) end_delivery(delivery, Status::gone);
    });
}

template <class T>
void Device<T>::end_receives_from(Source from) {
    for (DeviceMatcher* matcher : {&tagged_, &untagged_}) {
        while (Receive* receive = matcher->take_hopeless(from)) {
            end_receive(static_cast<WaitingReceive&>(*receive), Status::gone);
        }
    }
}

/// It sends what no device sends: whatever else comes of it is nobody's.
template <class T>
void Device<T>::break_off(unsigned rank) {
    Other& other = others_[rank];
    if (other.broken) return;
    other.broken = true;
    ++counters_.broken;
    if (!other.gone) lose(rank);
    other.bulk_left = std::numeric_limits<std::size_t>::max() / 2;
    transport_.expect_bulk(rank, other.bulk_left);
}

}  // namespace mpi_channel
