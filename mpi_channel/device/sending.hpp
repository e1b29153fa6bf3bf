// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Sending: which protocol, what waits for room. Part of Device (mpi_channel/device/device.hpp).

#include "billboard/bbp.h"
#include "mpi_channel/device/device.hpp"

#include <utility>

namespace mpi_channel {

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
    const std::size_t size = size_of(order.parts);
    Other& other = others_[order.to];
    if (other.unreachable) return tell_sent(order, Status::gone);
    if (other.backlog.empty() && !order.after_match && send_at_once(order, size)) return;
    Send& send = sends_.take();
    send.order = order;
    send.size = size;
    if (order.copy) {
        send.copy.resize(size);
        copy_out(order.parts, send.copy.data());
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
    if (order.parts.count() == 1) {
        message = {static_cast<const std::byte*>(order.parts[0].iov_base), size};
    } else {
        copy_out(order.parts, scratch_.data());
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
        std::size_t bundled = 0;
        int result = BBP_OK;
        if (other.backlog.size() > 1) result = leave_bundle(to, &bundled);
        if (result == BBP_OK && bundled == 0) result = leave(to, other.backlog.front());
        if (result == BBP_EAGAIN) return false;
        if (result != BBP_OK) {
            stop_sending(to);
            return true;
        }
        for (; bundled > 1; --bundled) {
            end_bundled(other.backlog.front());
            other.backlog.pop_front();
        }
        if (bundled == 1) end_bundled(other.backlog.front());
        other.backlog.pop_front();
    }
    return true;
}

template <class T>
int Device<T>::leave(unsigned to, Leaving& leaving) {
    if (leaving.remote != nullptr) return leave_remote(to, leaving);
    if (!leaving.has_packet && leaving.left == 0 && leaving.send != nullptr) begin(to, leaving);
    if (leaving.has_packet) {
        Bytes message;
        if (const std::size_t bytes = message_bytes(leaving); bytes != 0) {
            copy_out(leaving.send->order.parts, scratch_.data());
            message = Bytes(scratch_).first(bytes);
        }
        if (const int result = put_packet(to, leaving.packet, message); result != BBP_OK)
            return result;
        leaving.has_packet = false;
        if (leaving.asks) leaving.send->asked = true;
    }
    if (leaving.left != 0) {
        if (const int result = leave_bulk(to, leaving.send->order.parts,
                                          leaving.send->size - leaving.left, leaving.left);
            result != BBP_OK)
            return result;
    }
    if (leaving.send != nullptr && !leaving.asks) end_send(*leaving.send, Status::ok);
    return BBP_OK;
}

/// By which protocol a send goes is decided when it is its turn: until then it may have got credit.
template <class T>
void Device<T>::begin(unsigned to, Leaving& leaving) {
    Send& send = *leaving.send;
    Other& other = others_[to];
    send.offered =
        send.order.parts.count() == 1 && send.size <= get_most_ && may_be_read(to, send.size);
    const bool is_small = send.size <= kEagerMost && !send.order.after_match && !send.offered;
    const bool has_credit = cost_of(send.size) <= other.credit;
    leaving.has_packet = true;
    if (!is_small || !has_credit) {
        leaving.packet = packet_of(
            send.order, send.offered ? PacketType::request_get : PacketType::request_send);
        if (send.offered)
            leaving.packet.address = reinterpret_cast<std::uintptr_t>(send.order.parts[0].iov_base);
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
int Device<T>::leave_bulk(unsigned to, const Parts& parts, std::size_t at, std::size_t& left) {
    int result = BBP_OK;
    for_each_stretch(parts, at, left, [&](const std::byte* from, std::size_t count) {
        std::size_t sent = 0;
        result = transport_.send_channel({from, count}, to, &sent);
        left -= sent;
        if (result == BBP_OK && sent < count) result = BBP_EAGAIN;
        return result == BBP_OK;
    });
    return result;
}

// ---- Groups

/// Behind what waits to be sent to any of them: a group's messages keep their order, and bulk is
/// not broken.
template <class T>
int Device<T>::post_to_group(std::span<const int> to, std::uint32_t group, std::uint64_t number,
                             Bytes bytes) {
    Packet packet;
    packet.header.type = PacketType::group_message;
    packet.header.data = group;
    packet.header.tag = number;
    if (to.size() == 1) return send_for_group(static_cast<unsigned>(to[0]), packet, bytes);
    const auto has_backlog_to = [&](int rank) {
        return !others_[static_cast<unsigned>(rank)].backlog.empty();
    };
    if (std::any_of(to.begin(), to.end(), has_backlog_to)) return BBP_EAGAIN;
    std::array<std::byte, kMostPacketBytes> header;
    const std::size_t size = write(packet, header.data());
    return transport_.mcast_control(Bytes(header).first(size), bytes, to);
}

/// To one rank alone it waits in the backlog, as other messages; several get it by one post, or not
/// yet.
template <class T>
int Device<T>::send_for_group(unsigned to, Packet& packet, Bytes bytes) {
    Other& other = others_[to];
    if (other.unreachable) return BBP_EPEER;
    if (other.backlog.empty()) {
        const int result = put_packet(to, packet, bytes);
        if (result != BBP_EAGAIN) return result;
    }
    Send& send = sends_.take();
    send.order.to = to;
    send.order.untold = true;
    send.size = bytes.size();
    send.copy.assign(bytes.begin(), bytes.end());
    send.order.parts = {{send.copy.data(), send.copy.size()}};
    Leaving leaving;
    leaving.packet = packet;
    leaving.has_packet = true;
    leaving.send = &send;
    enqueue(to, std::move(leaving));
    return BBP_OK;
}

template <class T>
void Device<T>::tell_group_flow(unsigned to, std::uint32_t group, std::uint64_t taken) {
    if (others_[to].unreachable) return;
    Packet packet;
    packet.header.type = PacketType::group_flow;
    packet.header.data = group;
    packet.header.tag = taken;
    enqueue_packet(to, packet, nullptr);
}

template <class T>
void Device<T>::end_send(Send& send, Status status) {
    tell_sent(send.order, status);
    sends_.give(send);
}

template <class T>
void Device<T>::tell_sent(const SendOrder& order, Status status) {
    if (order.untold || (order.silent && status == Status::ok)) return;
    Completion completion;
    completion.of = Completion::Of::send;
    completion.status = status;
    completion.untagged = order.untagged;
    completion.mark = order.mark;
    completion.context = order.context;
    completions_.completed(completion);
}

}  // namespace mpi_channel
