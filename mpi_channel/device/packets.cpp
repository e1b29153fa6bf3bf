// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/packets.hpp"

#include "mpi_channel/device/credit.hpp"
#include "mpi_channel/device/fields.hpp"

#include <cstring>

namespace mpi_channel {

namespace {

// The header's fields: type:4 | untagged:1 | has data:1 | credit:26 | data:32 | tag:64
constexpr unsigned kUntaggedShift = 4, kHasDataShift = 5, kCreditShift = 6, kDataShift = 32;
constexpr std::uint64_t kTypeMask = (1U << kUntaggedShift) - 1;
static_assert(kCredit >> (kDataShift - kCreditShift) == 0);
static_assert(static_cast<std::uint64_t>(PacketType::request_read) <= kTypeMask);

/// Behind the header.
std::size_t tail_bytes(PacketType type) noexcept {
    switch (type) {
        case PacketType::long_message:
        case PacketType::ok_to_send: return 8;
        case PacketType::request_send: return 12;
        case PacketType::request_get: return 20;
        case PacketType::request_read: return 28;
        case PacketType::data:
        case PacketType::done_get: return 4;
        default: return 0;
    }
}

std::optional<PacketHeader> read_header(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < kHeaderBytes) return std::nullopt;
    const auto first = get<std::uint64_t>(bytes);
    const auto type = static_cast<std::uint8_t>(first & kTypeMask);
    if (type > static_cast<std::uint8_t>(PacketType::request_read)) return std::nullopt;
    PacketHeader header;
    header.type = static_cast<PacketType>(type);
    header.untagged = (first >> kUntaggedShift & 1) != 0;
    header.has_data = (first >> kHasDataShift & 1) != 0;
    header.credit = static_cast<std::uint32_t>(first) >> kCreditShift;
    header.data = static_cast<std::uint32_t>(first >> kDataShift);
    header.tag = get<std::uint64_t>(bytes);
    return header;
}

}  // namespace

std::size_t write(const Packet& packet, std::byte* to) noexcept {
    std::byte* next = to;
    const PacketHeader& header = packet.header;
    // By whole words, as they are read again where they are sent.
    put(next, std::uint64_t{header.data} << kDataShift |
                  std::uint64_t{header.credit} << kCreditShift |
                  std::uint64_t{header.has_data} << kHasDataShift |
                  std::uint64_t{header.untagged} << kUntaggedShift |
                  static_cast<std::uint64_t>(header.type));
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
        case PacketType::request_read:
            put(next, packet.size);
            put(next, packet.send);
            put(next, packet.address);
            put(next, packet.key);
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
    const std::size_t fixed = tail_bytes(header->type);
    if (header->type == PacketType::request_read && tail.size() > fixed) {
        packet.name = tail.size() - fixed;
        tail = tail.first(fixed);
    }
    if (tail.size() != fixed) return std::nullopt;
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
        case PacketType::request_read:
            packet.size = get<std::uint64_t>(tail);
            packet.send = get<std::uint32_t>(tail);
            packet.address = get<std::uint64_t>(tail);
            packet.key = get<std::uint64_t>(tail);
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
