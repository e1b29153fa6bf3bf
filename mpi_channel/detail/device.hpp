// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The device's definitions: mpi_channel/device.hpp has the contract.

#include "billboard/bbp.h"
#include "mpi_channel/device.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace mpi_channel {

namespace device {

inline constexpr unsigned kMostTaken = 32;       // packets in one progress()
inline constexpr unsigned kPollsPerLook = 1024;  // empty ones between looks for the dead
inline constexpr std::size_t kScratchBytes = 16 * 1024;

inline std::size_t size_of(const Parts& parts) noexcept {
    std::size_t size = 0;
    for (const iovec& part : parts) size += part.iov_len;
    return size;
}

/// Calls with each stretch of memory of `bytes` bytes from `at` on, until one answers false.
template <class Use>
void for_each_stretch(const Parts& parts, std::size_t at, std::size_t bytes, Use&& use) {
    for (const iovec& part : parts) {
        if (at >= part.iov_len) {
            at -= part.iov_len;
            continue;
        }
        const std::size_t here = std::min(part.iov_len - at, bytes);
        if (here == 0 || !use(static_cast<std::byte*>(part.iov_base) + at, here)) return;
        bytes -= here;
        at = 0;
    }
}

inline void copy_in(const Parts& parts, std::size_t at, std::span<const std::byte> bytes) {
    for_each_stretch(parts, at, bytes.size(), [&](std::byte* to, std::size_t count) {
        std::memcpy(to, bytes.data(), count);
        bytes = bytes.subspan(count);
        return true;
    });
}

inline void copy_out(const Parts& parts, std::byte* to) {
    for (const iovec& part : parts) {
        if (part.iov_len != 0) std::memcpy(to, part.iov_base, part.iov_len);
        to += part.iov_len;
    }
}

}  // namespace device

template <class T>
Device<T>::Device(T& transport, Completions& completions)
    : transport_(transport),
      completions_(completions),
      tagged_(transport.ranks()),
      untagged_(transport.ranks()),
      others_(transport.ranks()),
      scratch_(std::max(device::kScratchBytes, transport.packet_most())) {}

// ---- Sending ------------------------------------------------------------------------------------

template <class T>
Packet Device<T>::packet_of(const SendOrder& order, PacketType type) const {
    Packet packet;
    packet.header.type = type;
    packet.header.untagged = order.untagged;
    packet.header.has_data = order.data.has_value();
    packet.header.data = order.data.value_or(0);
    packet.header.tag = order.tag;
    return packet;
}

template <class T>
void Device<T>::send(const SendOrder& order) {
    const std::size_t size = device::size_of(order.parts);
    Other& other = others_[order.to];
    if (other.unreachable) return tell_sent(order, Status::gone);
    if (other.backlog.empty() && !order.after_match && send_at_once(order, size)) return;
    Send& send = sends_.take();
    send.order = order;
    send.size = size;
    if (order.copy) {
        send.copy.resize(size);
        device::copy_out(order.parts, send.copy.data());
        send.order.parts = {{send.copy.data(), size}};
    }
    Leaving leaving;
    leaving.send = &send;
    enqueue(order.to, std::move(leaving));
}

/// The usual case, for which nothing is noted down. False: it must wait, or be asked for.
template <class T>
bool Device<T>::send_at_once(const SendOrder& order, std::size_t size) {
    Other& other = others_[order.to];
    if (kHeaderBytes + size > transport_.packet_most() || cost_of(size) > other.credit)
        return false;
    Packet packet = packet_of(order, PacketType::short_message);
    Bytes message;
    if (order.parts.size() == 1) {
        message = {static_cast<const std::byte*>(order.parts[0].iov_base), size};
    } else {
        device::copy_out(order.parts, scratch_.data());
        message = Bytes(scratch_).first(size);
    }
    const int result = put_packet(order.to, packet, message);
    if (result == BBP_EAGAIN) return false;
    if (result == BBP_OK) {
        other.credit -= cost_of(size);
        ++counters_.short_sent;
    } else {
        stop_sending(order.to);
    }
    tell_sent(order, result == BBP_OK ? Status::ok : Status::gone);
    return true;
}

/// Credit that is owed goes with every packet.
template <class T>
int Device<T>::put_packet(unsigned to, Packet& packet, Bytes message) {
    Other& other = others_[to];
    packet.header.credit = static_cast<std::uint32_t>(other.owed);
    std::array<std::byte, kMostPacketBytes> header;
    const std::size_t bytes = write(packet, header.data());
    const int result = transport_.send_control_block(Bytes(header).first(bytes), message, to);
    if (result == BBP_OK) other.held -= std::exchange(other.owed, 0);
    return result;
}

template <class T>
void Device<T>::enqueue(unsigned to, Leaving leaving) {
    Other& other = others_[to];
    const bool was_empty = other.backlog.empty();
    other.backlog.push_back(std::move(leaving));
    if (!was_empty) return;
    waiting_.push_back(to);
    if (pump(to)) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), to));
}

template <class T>
void Device<T>::enqueue_packet(unsigned to, const Packet& packet, Send* bulk_of) {
    Leaving leaving;
    leaving.packet = packet;
    leaving.has_packet = true;
    leaving.send = bulk_of;
    leaving.left = bulk_of == nullptr ? 0 : bulk_of->size;
    enqueue(to, std::move(leaving));
}

/// True when nothing of the backlog is left.
template <class T>
bool Device<T>::pump(unsigned to) {
    Other& other = others_[to];
    while (!other.backlog.empty()) {
        const int result = leave(to, other.backlog.front());
        if (result == BBP_EAGAIN) return false;
        if (result != BBP_OK) {
            stop_sending(to);
            return true;
        }
        other.backlog.pop_front();
    }
    return true;
}

template <class T>
int Device<T>::leave(unsigned to, Leaving& leaving) {
    if (!leaving.has_packet && leaving.left == 0 && leaving.send != nullptr) begin(to, leaving);
    if (leaving.has_packet) {
        Bytes message;
        if (leaving.packet.header.type == PacketType::short_message) {
            device::copy_out(leaving.send->order.parts, scratch_.data());
            message = Bytes(scratch_).first(leaving.send->size);
        }
        if (const int result = put_packet(to, leaving.packet, message); result != BBP_OK)
            return result;
        leaving.has_packet = false;
        if (leaving.asks) leaving.send->asked = true;
    }
    if (leaving.left != 0) {
        if (const int result = leave_bulk(to, leaving); result != BBP_OK) return result;
    }
    if (leaving.send != nullptr && !leaving.asks) end_send(*leaving.send, Status::ok);
    return BBP_OK;
}

/// By which protocol a send goes is decided when it is its turn: until then it may have got credit.
template <class T>
void Device<T>::begin(unsigned to, Leaving& leaving) {
    Send& send = *leaving.send;
    Other& other = others_[to];
    const bool is_small = send.size <= kEagerMost && !send.order.after_match;
    const bool has_credit = cost_of(send.size) <= other.credit;
    leaving.has_packet = true;
    if (!is_small || !has_credit) {
        leaving.packet = packet_of(send.order, PacketType::request_send);
        leaving.packet.size = send.size;
        leaving.packet.send = send.number;
        leaving.asks = true;
        ++counters_.rendezvous_sent;
        if (is_small) ++counters_.out_of_credit;
        return;
    }
    other.credit -= cost_of(send.size);
    if (kHeaderBytes + send.size <= transport_.packet_most()) {
        leaving.packet = packet_of(send.order, PacketType::short_message);
        ++counters_.short_sent;
    } else {
        leaving.packet = packet_of(send.order, PacketType::long_message);
        leaving.packet.size = send.size;
        leaving.left = send.size;
        ++counters_.eager_sent;
    }
}

template <class T>
int Device<T>::leave_bulk(unsigned to, Leaving& leaving) {
    const Send& send = *leaving.send;
    int result = BBP_OK;
    device::for_each_stretch(send.order.parts, send.size - leaving.left, leaving.left,
                             [&](const std::byte* from, std::size_t count) {
                                 std::size_t sent = 0;
                                 result = transport_.send_channel({from, count}, to, &sent);
                                 leaving.left -= sent;
                                 if (result == BBP_OK && sent < count) result = BBP_EAGAIN;
                                 return result == BBP_OK;
                             });
    return result;
}

template <class T>
void Device<T>::end_send(Send& send, Status status) {
    tell_sent(send.order, status);
    sends_.give(send);
}

template <class T>
void Device<T>::tell_sent(const SendOrder& order, Status status) {
    if (order.silent && status == Status::ok) return;
    Completion completion;
    completion.of = Completion::Of::send;
    completion.status = status;
    completion.context = order.context;
    completions_.completed(completion);
}

// ---- Receiving ----------------------------------------------------------------------------------

template <class T>
void Device<T>::receive(const ReceiveOrder& order) {
    WaitingReceive& receive = receives_.take();
    receive.order = order;
    receive.wanted = {order.from, order.tag, order.ignore};
    receive.capacity = device::size_of(order.parts);
    receive.least = order.least;
    Placement placement;
    while (Unexpected* message =
               static_cast<Unexpected*>(matcher(order.untagged).post(receive, placement))) {
        const bool is_last = placement.last;
        hand_over(*message, receive, placement);  // the receive may be gone afterwards
        if (is_last) return;
    }
    const bool is_hopeless = order.from != kAnySource && others_[order.from].gone;
    if (is_hopeless && matcher(order.untagged).cancel(receive)) {
        end_receive(receive, Status::gone);
    }
}

template <class T>
bool Device<T>::cancel(void* context) {
    WaitingReceive* found = nullptr;
    receives_.for_each([&](WaitingReceive& receive) {
        if (receive.posted && receive.order.context == context &&
            (found == nullptr || receive.turn < found->turn)) {
            found = &receive;
        }
    });
    if (found == nullptr) return false;
    matcher(found->order.untagged).cancel(*found);
    end_receive(*found, Status::cancelled);
    return true;
}

/// One that was posted, and is no longer. What is on its way to it goes on; the last of that ends it.
template <class T>
void Device<T>::end_receive(WaitingReceive& receive, Status status) {
    receive.over = true;
    if (receive.on_their_way != 0) {
        receive.order.least = 0;
        return;
    }
    Completion completion;
    completion.of = Completion::Of::receive;
    completion.status = status;
    completion.context = receive.order.context;
    completion.untagged = receive.order.untagged;
    completion.envelope.source = receive.order.from;
    completion.envelope.tag = receive.order.tag;
    completions_.completed(completion);
    receives_.give(receive);
}

template <class T>
Unexpected* Device<T>::peek(const Wanted& wanted, bool untagged) {
    return static_cast<Unexpected*>(matcher(untagged).peek(wanted));
}

template <class T>
Unexpected* Device<T>::claim(const Wanted& wanted, bool untagged) {
    return static_cast<Unexpected*>(matcher(untagged).claim(wanted));
}

template <class T>
void Device<T>::receive_claimed(Unexpected& message, const ReceiveOrder& order) {
    WaitingReceive& receive = receives_.take();
    receive.order = order;
    Placement placement;
    placement.bytes = std::min(message.envelope.size, device::size_of(order.parts));
    placement.cut = placement.bytes < message.envelope.size;
    placement.last = true;
    hand_over(message, receive, placement);
}

/// Received to nowhere, and nobody told.
template <class T>
void Device<T>::discard(Unexpected& message) {
    WaitingReceive& receive = receives_.take();
    receive.is_silent = true;
    Placement placement;
    placement.last = true;
    hand_over(message, receive, placement);
}

template <class T>
typename Device<T>::Delivery& Device<T>::deliver(WaitingReceive& receive,
                                                 const Placement& placement,
                                                 const Envelope& envelope,
                                                 std::optional<std::uint32_t> data) {
    Delivery& delivery = deliveries_.take();
    delivery.receive = &receive;
    delivery.placement = placement;
    delivery.envelope = envelope;
    delivery.data = data;
    ++receive.on_their_way;
    receive.over |= placement.last;
    return delivery;
}

/// An unexpected message has found its receive.
template <class T>
void Device<T>::hand_over(Unexpected& message, WaitingReceive& receive,
                          const Placement& placement) {
    Delivery& delivery = deliver(receive, placement, message.envelope, message.data);
    const unsigned from = message.envelope.source;
    if (message.is_rendezvous) {
        accept(from, message.send, delivery);
        messages_.give(message);
    } else if (message.come < message.envelope.size) {
        message.delivery = &delivery;  // when all of it is here
    } else {
        end_kept(message, delivery);
    }
}

template <class T>
void Device<T>::end_kept(Unexpected& message, Delivery& delivery) {
    device::copy_in(delivery.receive->order.parts, delivery.placement.at,
                    Bytes(message.bytes).first(delivery.placement.bytes));
    give_back(message.envelope.source, cost_of(message.envelope.size));
    messages_.give(message);
    end_delivery(delivery, Status::ok);
}

template <class T>
void Device<T>::accept(unsigned from, std::uint32_t send, Delivery& delivery) {
    if (others_[from].unreachable) return end_delivery(delivery, Status::gone);
    Packet packet;
    packet.header.type = PacketType::ok_to_send;
    packet.send = send;
    packet.receive = delivery.number;
    delivery.is_awaited = true;
    enqueue_packet(from, packet, nullptr);
}

/// The delivery is given back, and its receive if that is over.
template <class T>
void Device<T>::end_delivery(Delivery& delivery, Status status) {
    WaitingReceive& receive = *delivery.receive;
    const bool is_last = --receive.on_their_way == 0 && receive.over;
    Completion completion;
    completion.of = Completion::Of::receive;
    completion.status = status == Status::ok && delivery.placement.cut ? Status::cut : status;
    completion.context = receive.order.context;
    completion.untagged = receive.order.untagged;
    completion.envelope = delivery.envelope;
    completion.data = delivery.data;
    completion.at = delivery.placement.at;
    completion.bytes = status == Status::ok ? delivery.placement.bytes : 0;
    completion.last = is_last;
    const bool is_silent = receive.is_silent;
    deliveries_.give(delivery);
    if (is_last) receives_.give(receive);
    if (!is_silent) completions_.completed(completion);
}

/// What a message has cost may be spent again. Told with the next packet, or alone when much has come together.
template <class T>
void Device<T>::give_back(unsigned to, std::size_t bytes) {
    Other& other = others_[to];
    other.owed += bytes;
    if (other.owed < kCredit / 2 || !other.backlog.empty() || other.unreachable) return;
    Packet packet;
    enqueue_packet(to, packet, nullptr);
}

// ---- What comes ---------------------------------------------------------------------------------

template <class T>
bool Device<T>::progress() {
    bool any = false;
    for (unsigned i = 0; i < device::kMostTaken && take_one(); ++i) any = true;
    for (std::size_t i = waiting_.size(); i-- > 0;) {
        const unsigned to = waiting_[i];
        if (!pump(to)) continue;
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), to));
        any = true;
    }
    if (any) {
        empty_polls_ = 0;
    } else if (++empty_polls_ % device::kPollsPerLook == 0) {
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
    if (result == T::kBulk) {
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
    }
    if (!is_sound) break_off(from);
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
        delivery = &deliver(static_cast<WaitingReceive&>(*match->receive), match->placement,
                            envelope, data);
        delivery->cost = cost_of(packet.size);
    } else {
        kept = &keep(from, packet);
    }
    if (is_long && packet.size != 0) {
        begin_bulk(from, delivery, kept, packet.size);
    } else if (delivery != nullptr) {
        device::copy_in(delivery->receive->order.parts, delivery->placement.at,
                        bytes.first(delivery->placement.bytes));
        give_back(from, delivery->cost);
        end_delivery(*delivery, Status::ok);
    } else {
        std::copy(bytes.begin(), bytes.end(), kept->bytes.begin());
        kept->come = bytes.size();
    }
    return true;
}

template <class T>
Unexpected& Device<T>::keep(unsigned from, const Packet& packet) {
    Unexpected& message = messages_.take();
    message.envelope = {from, packet.header.tag, packet.size};
    message.untagged = packet.header.untagged;
    if (packet.header.has_data) message.data = packet.header.data;
    message.is_rendezvous = packet.header.type == PacketType::request_send;
    message.send = packet.send;
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
        accept(from, packet.send,
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
        const int result = transport_.recv_from_channel(room_for_bulk(other), from, &size);
        if (result != BBP_OK || size == 0) return;
        other.bulk_left -= size;
        if (other.delivery != nullptr) other.delivery->come += size;
        if (other.kept != nullptr) other.kept->come += size;
    }
    if (!other.broken) end_bulk(other);
}

/// Where the next bytes go; what is cut, or of a rank that was given up, goes nowhere.
template <class T>
std::span<std::byte> Device<T>::room_for_bulk(Other& other) {
    std::span<std::byte> room(scratch_);
    if (other.kept != nullptr) {
        room = std::span(other.kept->bytes).subspan(other.kept->come);
    } else if (const Delivery* delivery = other.delivery) {
        const std::size_t wanted = delivery->placement.bytes;
        if (delivery->come < wanted) {
            device::for_each_stretch(
                delivery->receive->order.parts, delivery->placement.at + delivery->come,
                wanted - delivery->come, [&](std::byte* to, std::size_t count) {
                    room = {to, count};
                    return false;
                });
        }
    }
    return room.first(std::min(room.size(), other.bulk_left));
}

template <class T>
void Device<T>::end_bulk(Other& other) {
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
}

template <class T>
void Device<T>::lose(unsigned rank) {
    Other& other = others_[rank];
    other.gone = true;
    stop_sending(rank);
    if (other.kept != nullptr) other.kept->is_hopeless = true;
    other.delivery = nullptr;
    other.kept = nullptr;
    for (Matcher* matcher : {&tagged_, &untagged_}) {
        while (Receive* receive = matcher->take_hopeless(rank)) {
            end_receive(static_cast<WaitingReceive&>(*receive), Status::gone);
        }
    }
    // What was on its way, and what only asked to be sent, will not come.
    messages_.for_each([&](Unexpected& message) {
        if (message.envelope.source != rank) return;
        if (!message.is_rendezvous && !message.is_hopeless) return;
        if (message.unexpected) matcher(message.untagged).claim(message);
        messages_.give(message);
    });
    deliveries_.for_each([&](Delivery& delivery) {
        if (delivery.envelope.source == rank) end_delivery(delivery, Status::gone);
    });
}

/// It sends what no device sends: whatever else comes of it is nobody's.
template <class T>
void Device<T>::break_off(unsigned rank) {
    Other& other = others_[rank];
    if (other.broken) return;
    other.broken = true;
    ++counters_.broken;
    lose(rank);
    other.bulk_left = std::numeric_limits<std::size_t>::max() / 2;
    transport_.expect_bulk(rank, other.bulk_left);
}

}  // namespace mpi_channel
