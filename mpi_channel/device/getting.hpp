// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages that their receiver reads from the sender's memory. Part of Device
/// (mpi_channel/device/device.hpp).

#include "mpi_channel/device/device.hpp"

#include <algorithm>

namespace mpi_channel {

template <class T>
void Device<T>::use(PeerMemory& peers, std::size_t least, std::size_t most) noexcept {
    peers_ = &peers;
    get_least_ = least;
    get_most_ = most;
}

/// Whether the other may read from here, as far as is known.
template <class T>
bool Device<T>::may_be_read(unsigned to, std::size_t size) {
    return size >= get_least_ && !others_[to].cannot_read && peers_->reaches(to);
}

template <class T>
bool Device<T>::may_read(unsigned from) {
    return peers_ != nullptr && !others_[from].unreadable && peers_->reaches(from);
}

/// A slice of the message that has waited longest. False: none waits.
template <class T>
bool Device<T>::read_some() {
    if (reads_.empty()) return false;
    Delivery* const delivery = deliveries_.find(reads_.front());
    if (delivery == nullptr) {  // its sender has died
        reads_.pop_front();
        return true;
    }
    const unsigned from = delivery->envelope.source;
    const std::size_t left = delivery->placement.bytes - delivery->come;
    const std::size_t size = std::min(left, kGetSlice);
    if (!read_slice(*delivery, size)) {
        others_[from].unreadable = true;
        delivery->come = 0;
        reads_.pop_front();
        ask_for_bytes(from, delivery->send, *delivery);
        return true;
    }
    delivery->come += size;
    if (size < left) return true;
    reads_.pop_front();
    ++counters_.gets_received;
    Packet packet;
    packet.header.type = PacketType::done_get;
    packet.send = delivery->send;
    enqueue_packet(from, packet, nullptr);
    end_delivery(*delivery, Status::ok);
    return true;
}

template <class T>
bool Device<T>::read_slice(Delivery& delivery, std::size_t size) {
    const unsigned from = delivery.envelope.source;
    std::uint64_t address = delivery.address + delivery.come;
    bool is_read = true;
    for_each_stretch(delivery.receive->order.parts, delivery.placement.at + delivery.come, size,
                     [&](std::byte* to, std::size_t count) {
                         is_read = peers_->read(from, address, {to, count});
                         address += count;
                         return is_read;
                     });
    return is_read;
}

template <class T>
bool Device<T>::on_done_get(unsigned from, const Packet& packet) {
    Send* send = sends_.find(packet.send);
    if (send == nullptr || send->order.to != from || !send->asked || !send->offered) return false;
    ++counters_.gets_sent;
    end_send(*send, Status::ok);
    return true;
}

}  // namespace mpi_channel
