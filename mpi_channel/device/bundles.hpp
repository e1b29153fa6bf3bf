// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Bundles: several packets that wait for room leave as one. Part of Device
/// (mpi_channel/device/device.hpp).
///
/// Where ranks share a processor, a sender finds no room until its receiver has had its turn. What
/// a turn carries is then not the few packets that the billboard has places for, but as many as fit
/// into that number of the longest ones.

#include "mpi_channel/device/device.hpp"

#include <cstring>

namespace mpi_channel {

/// Of one that is next to leave and no part of bulk: how long it is with its message; 0: it is none
/// for a bundle.
template <class T>
std::size_t Device<T>::bundled_bytes(unsigned to, Leaving& leaving) {
    if (leaving.remote != nullptr) return 0;
    if (!leaving.has_packet && leaving.left == 0 && leaving.send != nullptr) begin(to, leaving);
    if (!leaving.has_packet || leaving.left != 0) return 0;
    return sizeof(BundledLength) + kMostPacketBytes + message_bytes(leaving);
}

/// As many as fit, in their order; BBP_EAGAIN: none has left. `*count`: how many have.
template <class T>
int Device<T>::leave_bundle(unsigned to, std::size_t* count) {
    auto& backlog = others_[to].backlog;
    const std::size_t room = transport_.packet_most() - kHeaderBytes;
    std::byte* const begin_of = scratch_.data();
    std::byte* next = begin_of;
    *count = 0;
    while (*count < backlog.size()) {
        Leaving& leaving = backlog[*count];
        const std::size_t most = bundled_bytes(to, leaving);
        if (most == 0 || static_cast<std::size_t>(next - begin_of) + most > room) break;
        leaving.packet.header.credit = 0;  // the bundle's own header has it
        std::byte* const packet = next + sizeof(BundledLength);
        std::byte* const message = packet + write(leaving.packet, packet);
        if (const std::size_t bytes = message_bytes(leaving); bytes != 0)
            copy_out(leaving.send->order.parts, message);
        const auto length = static_cast<BundledLength>(message + message_bytes(leaving) - packet);
        std::memcpy(next, &length, sizeof length);
        next = packet + length;
        ++*count;
    }
    if (*count < 2) {
        *count = 0;
        return BBP_OK;
    }
    Packet bundle;
    bundle.header.type = PacketType::bundle;
    const int result = put_packet(to, bundle, Bytes(begin_of, next));
    if (result != BBP_OK) *count = 0;
    return result;
}

/// The first of the backlog has left in a bundle.
template <class T>
void Device<T>::end_bundled(Leaving& leaving) {
    if (leaving.send == nullptr) return;
    if (leaving.asks) {
        leaving.send->asked = true;
    } else {
        end_send(*leaving.send, Status::ok);
    }
}

/// What announces bulk is the last: the rest of the bundle would be taken for that.
template <class T>
bool Device<T>::on_bundle(unsigned from, Bytes bytes) {
    const Other& other = others_[from];
    return for_each_bundled(bytes, [&](Bytes packet) {
        if (other.broken) return true;
        const auto what = read(packet);
        if (!what || what->header.type == PacketType::bundle || other.bulk_left != 0) return false;
        on_packet(from, packet);
        return true;
    });
}

}  // namespace mpi_channel
