// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Access by others to memory that is registered here: the target's side. Part of Device
/// (mpi_channel/device/device.hpp).
///
/// The requests of one rank are done and answered in their order.
///
/// Progress: on each packet and piece of bulk; no call waits. Thread safety: one thread at a time.
/// Errors: the answer; std::bad_alloc.
/// Trust: on_request() takes any rank's packet, and returns false for what no device asks. Nothing
/// outside of a region is touched: a region may be removed at any time, so it is looked for again
/// for each stretch of bytes that arrives.
/// Invariants, checked where the transport is simulated and in debug builds
///   (V1) At most kRemoteWindow answers to a rank wait to leave.
///   (V2) Bulk is written within the piece that its packet named.
///   (V3) Nothing is asked before serve(): the device's part.

#include "mpi_channel/device/access.hpp"
#include "mpi_channel/device/incoming_bulk.hpp"
#include "mpi_channel/device/reach.hpp"
#include "mpi_channel/device/regions.hpp"
#include "mpi_channel/device/remote_packets.hpp"
#include "mpi_channel/device/requests.hpp"
#include "mpi_channel/device/sending.hpp"
#include "rmem/link/memory.hpp"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace mpi_channel {

template <class T>
class Serving final : private BulkSink {
public:
    using Bytes = std::span<const std::byte>;
    using Data = std::optional<std::uint32_t>;

    Serving(T& transport, Reach& reach, Sending<T>& sending, IncomingBulk<T>& bulk)
        : reach_(reach), sending_(sending), bulk_(bulk), writes_(transport.ranks()) {}

    void serve(const Regions& regions, RemoteEvents& events) noexcept {
        regions_ = &regions;
        events_ = &events;
    }
    [[nodiscard]] bool on_request(unsigned from, const RemotePacket& packet, Data data,
                                  Bytes bytes);

    [[nodiscard]] std::uint64_t served() const noexcept { return served_; }
    [[nodiscard]] std::uint64_t denied() const noexcept { return denied_; }

private:
    static constexpr bool kChecks = rmem::is_simulated<T>;

    /// A write whose bytes come as bulk.
    struct Write {
        RemotePacket packet;
        Data data;
        std::size_t arrived = 0;
        RemoteStatus status = RemoteStatus::ok;
    };

    std::span<std::byte> room(unsigned from) override;
    void arrived(unsigned from, std::size_t bytes) override { writes_[from].arrived += bytes; }
    void is_whole(unsigned from) override;

    bool on_write(unsigned from, const RemotePacket& packet, Data data, Bytes bytes);
    [[nodiscard]] bool on_write_get(unsigned from, const RemotePacket& packet, Data data);
    [[nodiscard]] bool on_read(unsigned from, const RemotePacket& packet);
    Regions::Found find(const RemotePacket& packet) const;
    void tell_touched(unsigned from, const RemotePacket& packet, Data data);
    void end_write(unsigned from, const RemotePacket& packet, Data data, RemoteStatus status);
    void refuse_or_done(unsigned to, RemoteStatus status);
    void answer(unsigned to, const RemotePacket& packet, Bytes bytes = {});

    Reach& reach_;
    Sending<T>& sending_;
    IncomingBulk<T>& bulk_;
    const Regions* regions_ = nullptr;
    RemoteEvents* events_ = nullptr;
    std::vector<Write> writes_;  ///< of each rank
    std::uint64_t served_ = 0;   ///< pieces
    std::uint64_t denied_ = 0;   ///< of these
};

template <class T>
bool Serving<T>::on_request(unsigned from, const RemotePacket& packet, Data data, Bytes bytes) {
    RMEM_CHECK_IF(kChecks, regions_ != nullptr);
    if (sending_.answers(from) >= kRemoteWindow) return false;  // it asks without end
    ++served_;
    switch (packet.kind) {
        case RemoteKind::write: return on_write(from, packet, data, bytes);
        case RemoteKind::write_get: return on_write_get(from, packet, data);
        default: return on_read(from, packet);
    }
}

template <class T>
Regions::Found Serving<T>::find(const RemotePacket& packet) const {
    const bool writes = packet.kind == RemoteKind::write || packet.kind == RemoteKind::write_get;
    Regions::Found found = regions_->find(packet.place, writes);
    if (found.memory != nullptr) found.memory += packet.at;
    return found;
}

template <class T>
bool Serving<T>::on_write(unsigned from, const RemotePacket& packet, Data data, Bytes bytes) {
    if (packet.is_long) {
        if (packet.size > kRemotePiece) return false;
        writes_[from] = {packet, data, 0, RemoteStatus::ok};
        bulk_.begin(from, packet.size, this);
        return true;
    }
    const Regions::Found found = find(packet);
    if (found.status == RemoteStatus::ok && !bytes.empty())
        std::memcpy(found.memory, bytes.data(), bytes.size());
    end_write(from, packet, data, found.status);
    return true;
}

template <class T>
bool Serving<T>::on_write_get(unsigned from, const RemotePacket& packet, Data data) {
    if (packet.size > kGetSlice) return false;
    const Regions::Found found = find(packet);
    RemoteStatus status = found.status;
    if (status == RemoteStatus::ok && packet.size != 0) {
        const bool is_read =
            reach_.may_read(from) && reach_.read(from, packet.source, {found.memory, packet.size});
        if (!is_read) {
            reach_.found_unreadable(from);
            status = RemoteStatus::unreadable;
        }
    }
    end_write(from, packet, data, status);
    return true;
}

template <class T>
bool Serving<T>::on_read(unsigned from, const RemotePacket& packet) {
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

// ---- Answers

template <class T>
void Serving<T>::end_write(unsigned from, const RemotePacket& packet, Data data,
                           RemoteStatus status) {
    if (status == RemoteStatus::ok) tell_touched(from, packet, data);
    refuse_or_done(from, status);
}

/// Once of an access, when its last piece is done.
template <class T>
void Serving<T>::tell_touched(unsigned from, const RemotePacket& packet, Data data) {
    if (!packet.is_last) return;
    const bool writes = packet.kind == RemoteKind::write || packet.kind == RemoteKind::write_get;
    events_->touched({writes, from, packet.place.extent, data, find(packet).owner});
}

template <class T>
void Serving<T>::refuse_or_done(unsigned to, RemoteStatus status) {
    if (status == RemoteStatus::no_key || status == RemoteStatus::denied) ++denied_;
    RemotePacket packet;
    packet.status = status;
    answer(to, packet);
}

/// The bytes are those of now: they may change before the answer leaves.
template <class T>
void Serving<T>::answer(unsigned to, const RemotePacket& packet, Bytes bytes) {
    if (sending_.is_unreachable(to)) return;
    RemoteToSend remote;
    remote.packet = packet;
    remote.copy.assign(bytes.begin(), bytes.end());
    remote.bytes = bytes.size();
    sending_.post(to, std::move(remote));
    RMEM_CHECK_IF(kChecks, sending_.answers(to) <= kRemoteWindow);
}

// ---- Bulk

/// The bytes of a write that must be refused go nowhere.
template <class T>
std::span<std::byte> Serving<T>::room(unsigned from) {
    Write& write = writes_[from];
    RMEM_CHECK_IF(kChecks, write.arrived < write.packet.size);
    const Regions::Found found = find(write.packet);
    if (write.status == RemoteStatus::ok) write.status = found.status;
    if (write.status != RemoteStatus::ok) return {};
    return {found.memory + write.arrived, write.packet.size - write.arrived};
}

template <class T>
void Serving<T>::is_whole(unsigned from) {
    const Write write = writes_[from];
    end_write(from, write.packet, write.data, write.status);
}

}  // namespace mpi_channel
