// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The packets of the MPI device: what one tells another.
///
/// A packet is a header of kHeaderBytes and what its type adds. All ranks of a ring are of one machine type, so numbers are
/// as they lie in memory, at multiples of four. The header and a message of 8 bytes fit one line of the billboard.
///
///   type          adds                                          then
///   SHORT         the message                                   -
///   LONG          size 8                                        bulk: the message
///   REQUEST_SEND  size 8, send 4                                OK_TO_SEND
///   OK_TO_SEND    send 4, receive 4                             DATA
///   DATA          receive 4                                     bulk: the message
///   FLOW          -                                             -
///   GROUP         the message; data: the group, tag: the step   -
///   GROUP_FLOW    data: the group, tag: messages taken          -
///
/// Trust: read() bounds what it gives; whether numbers mean anything is the device's to check.
/// Source: the packets of MPICH-1's channel device (facts in docs/design/mpi-channel.md).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace mpi_channel {

enum class PacketType : std::uint8_t {
    short_message,
    long_message,
    request_send,
    ok_to_send,
    data,
    flow,
    group_message,
    group_flow
};

struct PacketHeader {
    PacketType type = PacketType::flow;
    bool untagged = false;     ///< a message without a tag
    bool has_data = false;     ///< `data` is the sender's word for the receiver
    std::uint32_t credit = 0;  ///< bytes of messages received, which the other may send again
    std::uint32_t data = 0;
    std::uint64_t tag = 0;
};

struct Packet {
    PacketHeader header;
    std::uint64_t size = 0;  ///< of the message: LONG, REQUEST_SEND; of the payload: SHORT, GROUP
    std::uint32_t send = 0;  ///< the sender's number for the request
    std::uint32_t receive = 0;  ///< the receiver's
};

inline constexpr std::size_t kHeaderBytes = 20;
inline constexpr std::size_t kMostPacketBytes = kHeaderBytes + 12;  ///< without a SHORT's message

/// Into `to`, which has kMostPacketBytes; returns how many. The message of a SHORT goes behind them.
std::size_t write(const Packet& packet, std::byte* to) noexcept;

/// Nothing if it is none. The message of a SHORT or GROUP are the last `size` bytes.
std::optional<Packet> read(std::span<const std::byte> bytes) noexcept;

}  // namespace mpi_channel
