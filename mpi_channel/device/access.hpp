// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Access to others' memory: the side that asks. Part of Device (mpi_channel/device/device.hpp).
///
/// An access is asked for in pieces, at most as many at a time as its target keeps answers for;
/// answers come in the order of the pieces, each of which the first in `asked` is.

#include "billboard/bbp.h"
#include "mpi_channel/device/device.hpp"

#include <algorithm>
#include <cstring>

namespace mpi_channel {

template <class T>
void Device<T>::access(const RemoteOrder& order) {
    Other& other = others_[order.to];
    ++counters_.accesses;
    if (other.unreachable)
        return events_->over({order.writes, RemoteStatus::gone, order.mark, order.context});
    Access& access = accesses_.take();
    access.order = order;
    if (order.copy) {
        access.copy.resize(size_of(order.parts));
        copy_out(order.parts, access.copy.data());
        access.order.parts = {{access.copy.data(), access.copy.size()}};
    }
    divide(access);
    other.accesses.push_back(&access);
    ++accesses_waiting_;
    ask(order.to);
}

template <class T>
void Device<T>::divide(Access& access) {
    const RemoteOrder& order = access.order;
    std::size_t before = 0;
    for (std::size_t i = 0; i < order.places.size(); ++i) {
        const std::size_t size = order.places[i].extent;
        // Shorter ones keep their order, which from memory to memory is not kept.
        const bool by_get = size > kRemotePiece && is_within_reach(order, size);
        access.left.push_back({i, 0, before, size, by_get, i + 1 == order.places.size()});
        before += size;
    }
}

/// Of who would have to read the other's memory.
template <class T>
bool Device<T>::is_within_reach(const RemoteOrder& order, std::size_t size) {
    if (order.writes) return order.parts.count() == 1 && may_be_read(order.to, size);
    return size >= get_least_ && may_read(order.to);
}

template <class T>
void Device<T>::ask(unsigned to) {
    Other& other = others_[to];
    while (!other.accesses.empty() && other.asked.size() < kRemoteWindow) {
        Access& access = *other.accesses.front();
        const Range piece = next_piece(access);
        if (access.left.empty()) {
            other.accesses.pop_front();
            --accesses_waiting_;
        }
        ask_for(to, access, piece);
        if (other.unreachable) return;  // nothing of it is left
    }
}

template <class T>
typename Device<T>::Range Device<T>::next_piece(Access& access) {
    const Other& other = others_[access.order.to];
    Range& range = access.left.front();
    range.by_get &= !(access.order.writes ? other.cannot_read : other.unreadable);
    Range piece = range;
    piece.size = std::min(range.size, range.by_get ? kGetSlice : kRemotePiece);
    piece.is_last = range.is_last && piece.size == range.size;
    range.at += piece.size;
    range.size -= piece.size;
    if (range.size == 0) access.left.pop_front();
    return piece;
}

template <class T>
void Device<T>::ask_for(unsigned to, Access& access, const Range& range) {
    const RemoteOrder& order = access.order;
    Remote remote;
    remote.access = &access;
    remote.at = range.before + range.at;
    RemotePacket& packet = remote.packet;
    packet.kind = order.writes ? (range.by_get ? RemoteKind::write_get : RemoteKind::write)
                               : (range.by_get ? RemoteKind::read_get : RemoteKind::read);
    packet.place = order.places[range.place];
    packet.at = range.at;
    packet.size = range.size;
    packet.is_last = range.is_last;
    if (packet.kind == RemoteKind::write_get)
        packet.source = reinterpret_cast<std::uintptr_t>(order.parts[0].iov_base) + remote.at;
    const std::size_t bytes = packet.kind == RemoteKind::write ? range.size : 0;
    ++access.asked;
    others_[to].asked.push_back({&access, range, packet.kind});
    enqueue_remote(to, std::move(remote), range.is_last ? order.data : std::nullopt, bytes);
}

/// `bytes` of the access, or of the copy, go with it.
template <class T>
void Device<T>::enqueue_remote(unsigned to, Remote remote, std::optional<std::uint32_t> data,
                               std::size_t bytes) {
    remote.bytes = bytes;
    remote.packet.is_long = kHeaderBytes + kMostRemoteBytes + bytes > transport_.packet_most();
    Leaving leaving;
    leaving.packet.header.type = PacketType::remote;
    leaving.packet.header.has_data = data.has_value();
    leaving.packet.header.data = data.value_or(0);
    leaving.has_packet = true;
    leaving.left = remote.packet.is_long ? bytes : 0;
    leaving.remote = std::make_unique<Remote>(std::move(remote));
    enqueue(to, std::move(leaving));
}

template <class T>
int Device<T>::leave_remote(unsigned to, Leaving& leaving) {
    Remote& remote = *leaving.remote;
    const Parts copied{{remote.copy.data(), remote.copy.size()}};
    const Parts& parts = remote.access != nullptr ? remote.access->order.parts : copied;
    if (leaving.has_packet) {
        std::byte* next = scratch_.data() + write(remote.packet, scratch_.data());
        if (!remote.packet.is_long) {
            for_each_stretch(parts, remote.at, remote.bytes,
                             [&](const std::byte* from, std::size_t count) {
                                 std::memcpy(next, from, count);
                                 next += count;
                                 return true;
                             });
        }
        const Bytes message(scratch_.data(), next);
        if (const int result = put_packet(to, leaving.packet, message); result != BBP_OK)
            return result;
        leaving.has_packet = false;
    }
    if (leaving.left != 0) {
        const std::size_t at = remote.at + remote.bytes - leaving.left;
        if (const int result = leave_bulk(to, parts, at, leaving.left); result != BBP_OK)
            return result;
    }
    if (remote.packet.is_answer()) --others_[to].answers;
    return BBP_OK;
}

// ---- What the target says -----------------------------------------------------------------------

template <class T>
bool Device<T>::on_answer(unsigned from, const RemotePacket& packet, Bytes bytes) {
    Other& other = others_[from];
    if (packet.is_long && packet.value > kRemotePiece) return false;
    if (other.unreachable) {  // what was asked has ended
        if (packet.is_long) begin_bulk(from, nullptr, nullptr, packet.value);
        return true;
    }
    if (other.asked.empty()) return false;
    const Piece piece = other.asked.front();
    const bool is_write = piece.access->order.writes;
    RemoteStatus status = packet.status;
    switch (packet.kind) {
        case RemoteKind::reply:
            if (piece.kind != RemoteKind::read || packet.value != piece.range.size) return false;
            if (packet.is_long) {
                begin_remote_bulk(from, packet, std::nullopt, packet.value);
                return true;
            }
            if (piece.access->status == RemoteStatus::ok)
                copy_in(piece.access->order.parts, piece.range.before + piece.range.at, bytes);
            status = RemoteStatus::ok;
            break;
        case RemoteKind::granted:
            if (piece.kind != RemoteKind::read_get) return false;
            status = take_granted(from, piece, packet.value);
            break;
        default:
            if (status == RemoteStatus::ok && !is_write) return false;
            if (status == RemoteStatus::unreadable && piece.kind != RemoteKind::write_get)
                return false;
    }
    if (status != RemoteStatus::unreadable) {
        end_piece(from, status);
    } else {
        (is_write ? other.cannot_read : other.unreadable) = true;
        ask_again(from, piece);
    }
    return true;
}

template <class T>
RemoteStatus Device<T>::take_granted(unsigned from, const Piece& piece, std::uint64_t address) {
    if (piece.access->status != RemoteStatus::ok) return RemoteStatus::ok;
    bool is_read = may_read(from);
    for_each_stretch(piece.access->order.parts, piece.range.before + piece.range.at,
                     is_read ? piece.range.size : 0, [&](std::byte* to, std::size_t count) {
                         is_read = peers_->read(from, address, {to, count});
                         address += count;
                         return is_read;
                     });
    return is_read ? RemoteStatus::ok : RemoteStatus::unreadable;
}

/// The first error of an access ends it, when what has been asked for is answered.
template <class T>
void Device<T>::end_piece(unsigned from, RemoteStatus status) {
    Other& other = others_[from];
    Access& access = *other.asked.front().access;
    other.asked.pop_front();
    --access.asked;
    if (status != RemoteStatus::ok && access.status == RemoteStatus::ok) {
        access.status = status;
        if (!access.left.empty()) {
            access.left.clear();
            std::erase(other.accesses, &access);
            --accesses_waiting_;
        }
    }
    if (access.asked == 0 && access.left.empty()) end_access(access);
    ask(from);
}

/// Over the ring, what could not go from memory to memory.
template <class T>
void Device<T>::ask_again(unsigned to, const Piece& piece) {
    Other& other = others_[to];
    Access& access = *piece.access;
    if (access.status != RemoteStatus::ok) return end_piece(to, access.status);
    other.asked.pop_front();
    --access.asked;
    if (access.left.empty()) {
        other.accesses.push_front(&access);
        ++accesses_waiting_;
    }
    Range range = piece.range;
    range.by_get = false;
    access.left.push_front(range);
    ask(to);
}

template <class T>
void Device<T>::end_access(Access& access) {
    const RemoteOrder& order = access.order;
    const RemoteCompletion completion{order.writes, access.status, order.mark, order.context};
    accesses_.give(access);
    events_->over(completion);
}

/// What was asked of it ends; what it asked is not answered.
template <class T>
void Device<T>::stop_access(unsigned to) {
    Other& other = others_[to];
    accesses_waiting_ -= static_cast<unsigned>(other.accesses.size());
    other.accesses.clear();
    other.asked.clear();
    other.answers = 0;
    if (other.remote && other.remote->packet.is_answer()) other.remote.reset();
    accesses_.for_each([&](Access& access) {
        if (access.order.to != to) return;
        access.status = RemoteStatus::gone;
        end_access(access);
    });
}

}  // namespace mpi_channel
