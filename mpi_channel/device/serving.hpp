// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Access by others to memory that is registered here. Part of Device
/// (mpi_channel/device/device.hpp).
///
/// What one rank asks is done and answered in its order. A region may be removed at any time: it is
/// looked for again for each stretch of bytes that comes.

#include "mpi_channel/device/device.hpp"

#include <cstring>
#include <utility>

namespace mpi_channel {

template <class T>
void Device<T>::serve(const Regions& regions, RemoteEvents& events) noexcept {
    regions_ = &regions;
    events_ = &events;
}

template <class T>
bool Device<T>::on_remote(unsigned from, const Packet& packet, Bytes bytes) {
    const auto remote = read_remote(bytes);
    if (!remote || events_ == nullptr) return false;
    if (remote->is_answer()) return on_answer(from, *remote, bytes);
    if (others_[from].answers >= kRemoteWindow) return false;  // it asks without end
    ++counters_.served;
    const auto data = packet.header.has_data ? std::optional(packet.header.data) : std::nullopt;
    switch (remote->kind) {
        case RemoteKind::write: return on_write(from, *remote, data, bytes);
        case RemoteKind::write_get: return on_write_get(from, *remote, data);
        default: return on_read(from, *remote);
    }
}

template <class T>
Regions::Found Device<T>::find(const RemotePacket& packet) const {
    const bool writes = packet.kind == RemoteKind::write || packet.kind == RemoteKind::write_get;
    Regions::Found found = regions_->find(packet.place, writes);
    if (found.memory != nullptr) found.memory += packet.at;
    return found;
}

template <class T>
bool Device<T>::on_write(unsigned from, const RemotePacket& packet,
                         std::optional<std::uint32_t> data, Bytes bytes) {
    if (packet.is_long) {
        if (packet.size > kRemotePiece) return false;
        begin_remote_bulk(from, packet, data, packet.size);
        return true;
    }
    const Regions::Found found = find(packet);
    if (found.status == RemoteStatus::ok && !bytes.empty())
        std::memcpy(found.memory, bytes.data(), bytes.size());
    end_write(from, packet, data, found.status);
    return true;
}

template <class T>
bool Device<T>::on_write_get(unsigned from, const RemotePacket& packet,
                             std::optional<std::uint32_t> data) {
    if (packet.size > kGetSlice) return false;
    const Regions::Found found = find(packet);
    RemoteStatus status = found.status;
    if (status == RemoteStatus::ok && packet.size != 0) {
        const bool is_read =
            may_read(from) && peers_->read(from, packet.source, {found.memory, packet.size});
        if (!is_read) {
            others_[from].unreadable = true;
            status = RemoteStatus::unreadable;
        }
    }
    end_write(from, packet, data, status);
    return true;
}

template <class T>
void Device<T>::end_write(unsigned from, const RemotePacket& packet,
                          std::optional<std::uint32_t> data, RemoteStatus status) {
    if (status == RemoteStatus::ok) tell_touched(from, packet, data);
    refuse_or_done(from, status);
}

template <class T>
void Device<T>::refuse_or_done(unsigned to, RemoteStatus status) {
    if (status == RemoteStatus::no_key || status == RemoteStatus::denied) ++counters_.denied;
    RemotePacket packet;
    packet.status = status;
    answer(to, packet);
}

template <class T>
bool Device<T>::on_read(unsigned from, const RemotePacket& packet) {
    const bool by_get = packet.kind == RemoteKind::read_get;
    if (packet.size > (by_get ? kGetSlice : kRemotePiece)) return false;
    const Regions::Found found = find(packet);
    if (found.status != RemoteStatus::ok) {
        refuse_or_done(from, found.status);
        return true;
    }
    tell_touched(from, packet, std::nullopt);
    RemotePacket reply;
    reply.kind = by_get ? RemoteKind::granted : RemoteKind::reply;
    reply.value = by_get ? reinterpret_cast<std::uintptr_t>(found.memory) : packet.size;
    answer(from, reply, by_get ? Bytes() : Bytes(found.memory, packet.size));
    return true;
}

/// Once of an access, when its last piece is done.
template <class T>
void Device<T>::tell_touched(unsigned from, const RemotePacket& packet,
                             std::optional<std::uint32_t> data) {
    if (!packet.is_last) return;
    const bool writes = packet.kind == RemoteKind::write || packet.kind == RemoteKind::write_get;
    events_->touched({writes, from, packet.place.extent, data, find(packet).owner});
}

/// The bytes are those of now: they may change before the answer leaves.
template <class T>
void Device<T>::answer(unsigned to, const RemotePacket& packet, Bytes bytes) {
    if (others_[to].unreachable) return;
    ++others_[to].answers;
    Remote remote;
    remote.packet = packet;
    remote.copy.assign(bytes.begin(), bytes.end());
    enqueue_remote(to, std::move(remote), std::nullopt, bytes.size());
}

// ---- Bulk ---------------------------------------------------------------------------------------

template <class T>
void Device<T>::begin_remote_bulk(unsigned from, const RemotePacket& packet,
                                  std::optional<std::uint32_t> data, std::size_t size) {
    others_[from].remote = RemoteBulk{packet, data, 0, RemoteStatus::ok};
    begin_bulk(from, nullptr, nullptr, size);
}

/// Where its next bytes go; those of an access that has failed go nowhere.
template <class T>
std::span<std::byte> Device<T>::room_for_remote(unsigned from) {
    Other& other = others_[from];
    RemoteBulk& bulk = *other.remote;
    std::span<std::byte> room(scratch_);
    if (bulk.packet.is_answer()) {
        const Piece& piece = other.asked.front();
        if (piece.access->status != RemoteStatus::ok) return room;
        for_each_stretch(piece.access->order.parts, piece.range.before + piece.range.at + bulk.come,
                         piece.range.size - bulk.come, [&](std::byte* to, std::size_t count) {
                             room = {to, count};
                             return false;
                         });
        return room;
    }
    const Regions::Found found = find(bulk.packet);
    if (bulk.status == RemoteStatus::ok) bulk.status = found.status;
    if (bulk.status != RemoteStatus::ok) return room;
    return {found.memory + bulk.come, bulk.packet.size - bulk.come};
}

template <class T>
void Device<T>::end_remote_bulk(unsigned from) {
    const RemoteBulk bulk = *std::exchange(others_[from].remote, std::nullopt);
    if (bulk.packet.is_answer()) {
        end_piece(from, RemoteStatus::ok);
    } else {
        end_write(from, bulk.packet, bulk.data, bulk.status);
    }
}

}  // namespace mpi_channel
