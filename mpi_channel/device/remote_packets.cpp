// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/remote_packets.hpp"

#include "mpi_channel/device/fields.hpp"

#include <cstring>

namespace mpi_channel {

namespace {

constexpr std::uint8_t kLong = 1, kLast = 2;
constexpr std::size_t kBeginning = 4, kRequestBytes = kBeginning + 48,
                      kAnswerBytes = kBeginning + 8;
static_assert(kRequestBytes == kMaxRemoteBytes);

/// Whether the bytes that follow are as many as the packet says.
bool is_whole(const RemotePacket& packet, std::size_t bytes) noexcept {
    const bool has_bytes = packet.kind == RemoteKind::write || packet.kind == RemoteKind::reply;
    if (!has_bytes) return bytes == 0 && !packet.is_long;
    const std::uint64_t size = packet.is_answer() ? packet.value : packet.size;
    return packet.is_long ? bytes == 0 && size != 0 : bytes == size;
}

}  // namespace

std::size_t write(const RemotePacket& packet, std::byte* to) noexcept {
    std::byte* next = to;
    put(next, static_cast<std::uint8_t>(packet.kind));
    put(next,
        static_cast<std::uint8_t>((packet.is_long ? kLong : 0) | (packet.is_last ? kLast : 0)));
    put(next, static_cast<std::uint8_t>(packet.status));
    put(next, std::uint8_t{0});
    if (packet.is_answer()) {
        put(next, packet.value);
    } else {
        for (const std::uint64_t number :
             {packet.place.key, packet.place.address, packet.place.extent, packet.at, packet.size,
              packet.source})
            put(next, number);
    }
    return static_cast<std::size_t>(next - to);
}

std::optional<RemotePacket> read_remote(std::span<const std::byte>& bytes) noexcept {
    if (bytes.size() < kAnswerBytes) return std::nullopt;
    const auto kind = get<std::uint8_t>(bytes);
    const auto flags = get<std::uint8_t>(bytes);
    const auto status = get<std::uint8_t>(bytes);
    if (kind > static_cast<std::uint8_t>(RemoteKind::granted) || (flags & ~(kLong | kLast)) != 0 ||
        status > static_cast<std::uint8_t>(RemoteStatus::unreadable) ||
        get<std::uint8_t>(bytes) != 0)
        return std::nullopt;
    RemotePacket packet;
    packet.kind = static_cast<RemoteKind>(kind);
    packet.is_long = (flags & kLong) != 0;
    packet.is_last = (flags & kLast) != 0;
    packet.status = static_cast<RemoteStatus>(status);
    if (packet.is_answer()) {
        packet.value = get<std::uint64_t>(bytes);
    } else {
        if (bytes.size() < kRequestBytes - kBeginning) return std::nullopt;
        for (std::uint64_t* number :
             {&packet.place.key, &packet.place.address, &packet.place.extent, &packet.at,
              &packet.size, &packet.source})
            *number = get<std::uint64_t>(bytes);
        // The piece lies in the whole.
        if (packet.at > packet.place.extent || packet.size > packet.place.extent - packet.at)
            return std::nullopt;
    }
    return is_whole(packet, bytes.size()) ? std::optional(packet) : std::nullopt;
}

}  // namespace mpi_channel
