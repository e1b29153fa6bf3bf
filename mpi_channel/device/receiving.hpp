// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Receiving: receives that wait, messages that were here before them. Part of Device
/// (mpi_channel/device/device.hpp).

#include "mpi_channel/device/device.hpp"

#include <algorithm>

namespace mpi_channel {

template <class T>
void Device<T>::receive(const ReceiveOrder& order) {
    WaitingReceive& receive = receives_.take(order);
    Placement placement;
    while (Unexpected* message =
               static_cast<Unexpected*>(matcher(order.untagged).post(receive, placement))) {
        const bool is_last = placement.last;
        hand_over(*message, receive, placement);  // the receive may be gone afterwards
        if (is_last) return;
    }
    if (is_hopeless(order.from) && matcher(order.untagged).cancel(receive)) {
        end_receive(receive, Status::gone);
    }
}

/// Whether nobody is left who could send it. Oneself does not count: who waits here does not send.
template <class T>
bool Device<T>::is_hopeless(Source from) const noexcept {
    if (from != kAnySource) return others_[from].gone;
    return others_.size() > 1 && gone_ + 1 == others_.size();
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

template <class T>
Completion Device<T>::completion_of(const WaitingReceive& receive, Status status) const {
    Completion completion;
    completion.of = Completion::Of::receive;
    completion.status = status;
    completion.untagged = receive.order.untagged;
    completion.mark = receive.order.mark;
    completion.context = receive.order.context;
    completion.of_several = receive.order.least != 0;
    if (!receive.order.parts.empty()) {
        completion.buffer = static_cast<std::byte*>(receive.order.parts[0].iov_base);
    }
    return completion;
}

/// One that was posted, and is no longer. What is on its way to it goes on; the last of that ends
/// it.
template <class T>
void Device<T>::end_receive(WaitingReceive& receive, Status status) {
    receive.over = true;
    if (receive.on_their_way != 0) return;
    Completion completion = completion_of(receive, status);
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
    WaitingReceive& receive = receives_.take(order);
    const Placement placement = DeviceMatcher::place(receive, message.envelope.size);
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
    if (message.is_hopeless) {
        messages_.give(message);
        end_delivery(delivery, Status::gone);
    } else if (message.is_rendezvous) {
        accept(from, message.send, message.address, delivery);
        messages_.give(message);
    } else if (message.come < message.envelope.size) {
        message.delivery = &delivery;  // when all of it is here
    } else {
        end_kept(message, delivery);
    }
}

template <class T>
void Device<T>::end_kept(Unexpected& message, Delivery& delivery) {
    copy_in(delivery.receive->order.parts, delivery.placement.at,
            Bytes(message.bytes).first(delivery.placement.bytes));
    give_back(message.envelope.source, cost_of(message.envelope.size));
    messages_.give(message);
    end_delivery(delivery, Status::ok);
}

template <class T>
void Device<T>::accept(unsigned from, std::uint32_t send, std::optional<std::uint64_t> address,
                       Delivery& delivery) {
    if (address && may_read(from)) {
        delivery.address = *address;
        delivery.send = send;
        reads_.push_back(delivery.number);
    } else {
        ask_for_bytes(from, send, delivery);
    }
}

template <class T>
void Device<T>::ask_for_bytes(unsigned from, std::uint32_t send, Delivery& delivery) {
    if (others_[from].unreachable) return end_delivery(delivery, Status::gone);
    Packet packet;
    packet.header.type = PacketType::ok_to_send;
    packet.send = send;
    packet.receive = delivery.number;
    delivery.is_awaited = true;
    enqueue_packet(from, packet, nullptr);
}

template <class T>
void Device<T>::end_delivery(Delivery& delivery, Status status) {
    const Delivery over = delivery;
    deliveries_.give(delivery);
    --over.receive->on_their_way;
    tell_received(*over.receive, over.placement, over.envelope, over.data, status);
}

/// Of one message. The receive is given back if it is over.
template <class T>
void Device<T>::tell_received(WaitingReceive& receive, const Placement& placement,
                              const Envelope& envelope, std::optional<std::uint32_t> data,
                              Status status) {
    Completion completion =
        completion_of(receive, status == Status::ok && placement.cut ? Status::cut : status);
    completion.envelope = envelope;
    completion.data = data;
    completion.at = placement.at;
    completion.bytes = status == Status::ok ? placement.bytes : 0;
    completion.last = receive.on_their_way == 0 && receive.over;
    const bool is_silent = receive.is_silent;
    if (completion.last) receives_.give(receive);
    if (!is_silent) completions_.completed(completion);
}

/// What a message has cost may be spent again. Told with the next packet, or alone when much has
/// come together.
template <class T>
void Device<T>::give_back(unsigned to, std::size_t bytes) {
    Other& other = others_[to];
    other.owed += bytes;
    if (other.owed < kCredit / 2 || !other.backlog.empty() || other.unreachable) return;
    Packet packet;
    enqueue_packet(to, packet, nullptr);
}

}  // namespace mpi_channel
