// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/packets.hpp"

#include "mpi_channel/fields.hpp"

#include <cstring>

namespace mpi_channel {

namespace {

constexpr std::uint8_t kUntagged = 1, kHasData = 2;

// Where the header's fields stand.
constexpr std::size_t kTypeAt = 0, kFlagsAt = 1, kZeroAt = 2, kCreditAt = 4, kDataAt = 8,
                      kTagAt = 12;

template <class T>
T at(std::span<const std::byte> bytes, std::size_t place) noexcept {
    bytes = bytes.subspan(place);
    return get<T>(bytes);
}

/// What follows the header.
std::size_t tail_bytes(PacketType type) noexcept {
    switch (type) {
        case PacketType::long_message:
        case PacketType::ok_to_send: return 8;
        case PacketType::request_send: return 12;
        case PacketType::request_get: return 20;
        case PacketType::data:
        case PacketType::done_get: return 4;
        default: return 0;
    }
}

std::optional<PacketHeader> read_header(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < kHeaderBytes) return std::nullopt;
    const auto type = at<std::uint8_t>(bytes, kTypeAt);
    const auto flags = at<std::uint8_t>(bytes, kFlagsAt);
    if (type > static_cast<std::uint8_t>(PacketType::remote) ||
        (flags & ~(kUntagged | kHasData)) != 0 || at<std::uint16_t>(bytes, kZeroAt) != 0) {
        return std::nullopt;
    }
    PacketHeader header;
    header.type = static_cast<PacketType>(type);
    header.untagged = (flags & kUntagged) != 0;
    header.has_data = (flags & kHasData) != 0;
    header.credit = at<std::uint32_t>(bytes, kCreditAt);
    header.data = at<std::uint32_t>(bytes, kDataAt);
    header.tag = at<std::uint64_t>(bytes, kTagAt);
    return header;
}

}  // namespace

std::size_t write(const Packet& packet, std::byte* to) noexcept {
    std::byte* next = to;
    const PacketHeader& header = packet.header;
    put(next, static_cast<std::uint8_t>(header.type));
    put(next, static_cast<std::uint8_t>((header.untagged ? kUntagged : 0) |
                                        (header.has_data ? kHasData : 0)));
    put(next, std::uint16_t{0});
    put(next, header.credit);
    put(next, header.data);
    put(next, header.tag);
    switch (header.type) {
        case PacketType::long_message: put(next, packet.size); break;
        case PacketType::request_send:
            put(next, packet.size);
            put(next, packet.send);
            break;
        case PacketType::request_get:
            put(next, packet.size);
            put(next, packet.send);
            put(next, packet.address);
            break;
        case PacketType::done_get: put(next, packet.send); break;
        case PacketType::ok_to_send:
            put(next, packet.send);
            put(next, packet.receive);
            break;
        case PacketType::data: put(next, packet.receive); break;
        case PacketType::short_message:
        case PacketType::flow:
        case PacketType::bundle:
        case PacketType::group_message:
        case PacketType::group_flow:
        case PacketType::remote: break;
    }
    return static_cast<std::size_t>(next - to);
}

std::optional<Packet> read(std::span<const std::byte> bytes) noexcept {
    const auto header = read_header(bytes);
    if (!header) return std::nullopt;
    Packet packet;
    packet.header = *header;
    std::span<const std::byte> tail = bytes.subspan(kHeaderBytes);
    if (header->type == PacketType::short_message || header->type == PacketType::group_message ||
        header->type == PacketType::bundle || header->type == PacketType::remote) {
        packet.size = tail.size();
        return packet;
    }
    if (tail.size() != tail_bytes(header->type)) return std::nullopt;
    switch (header->type) {
        case PacketType::long_message: packet.size = get<std::uint64_t>(tail); break;
        case PacketType::request_send:
            packet.size = get<std::uint64_t>(tail);
            packet.send = get<std::uint32_t>(tail);
            break;
        case PacketType::request_get:
            packet.size = get<std::uint64_t>(tail);
            packet.send = get<std::uint32_t>(tail);
            packet.address = get<std::uint64_t>(tail);
            break;
        case PacketType::done_get: packet.send = get<std::uint32_t>(tail); break;
        case PacketType::ok_to_send:
            packet.send = get<std::uint32_t>(tail);
            packet.receive = get<std::uint32_t>(tail);
            break;
        case PacketType::data: packet.receive = get<std::uint32_t>(tail); break;
        case PacketType::short_message:
        case PacketType::flow:
        case PacketType::bundle:
        case PacketType::group_message:
        case PacketType::group_flow:
        case PacketType::remote: break;
    }
    return packet;
}

}  // namespace mpi_channel
