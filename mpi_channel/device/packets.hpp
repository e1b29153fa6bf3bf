// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The packets of the MPI device.
///
/// A packet is a header of kHeaderBytes and what its type adds. All ranks of a ring are of one
/// machine type, so numbers are as they lie in memory, at multiples of four. The header and a
/// message of 12 bytes fit a slot of the billboard; two of them with a message of 8 bytes each
/// share a line, so that a stream of such costs half as many lines.
///
///   type          adds                                          then
///   SHORT         the message                                   -
///   LONG          size 8                                        bulk: the message
///   REQUEST_SEND  size 8, send 4                                OK_TO_SEND
///   OK_TO_SEND    send 4, receive 4                             DATA
///   DATA          receive 4                                     bulk: the message
///   FLOW          -                                             -
///   BUNDLE        packets, each with its length 4 before it; none that announces bulk
///   GROUP         the message; data: the group, tag: the step   -
///   GROUP_FLOW    data: the group, tag: messages taken          -
///   REQUEST_GET   size 8, send 4, address 8                     DONE_GET, or OK_TO_SEND
///   DONE_GET      send 4                                        -
///   REQUEST_READ  size 8, send 4, address 8, key 8, and the     DONE_GET, or OK_TO_SEND
///                 sender's name on the fabric
///   REMOTE        what mpi_channel/device/remote_packets.hpp says
///
/// Trust: read() bounds what it gives; whether numbers mean anything is the device's to check.
/// Source: the packets of MPICH-1's channel device (facts in docs/design/mpi-channel.md).

#include <cstddef>
#include <cstdint>
#include <cstring>
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
    bundle,
    group_message,
    group_flow,
    request_get,
    done_get,
    remote,
    request_read
};

struct PacketHeader {
    PacketType type = PacketType::flow;
    bool untagged = false;     ///< a message without a tag
    bool has_data = false;     ///< `data` is the sender's word for the receiver
    std::uint32_t credit = 0;  ///< bytes of messages received, which the other may send again; at
                               ///< most kCredit
    std::uint32_t data = 0;
    std::uint64_t tag = 0;
};

struct Packet {
    PacketHeader header;
    /// Of the message: LONG, the requests; of what follows the header: SHORT, GROUP, BUNDLE,
    /// REMOTE.
    std::uint64_t size = 0;
    std::uint32_t send = 0;     ///< the sender's number for the request
    std::uint32_t receive = 0;  ///< the receiver's
    std::uint64_t address = 0;  ///< of the message, in the sender's memory
    std::uint64_t key = 0;      ///< of that memory, for the fabric
    std::size_t name = 0;       ///< REQUEST_READ: bytes of the name, at the end
};

inline constexpr std::size_t kHeaderBytes = 16;
inline constexpr std::size_t kMaxPacketBytes =
    kHeaderBytes + 28;  ///< without what follows the header of a SHORT or REMOTE, and names

/// Into `to`, which has kMaxPacketBytes; returns how many. The message of a SHORT, and the rest of
/// a REMOTE, and the name of a REQUEST_READ, go behind them.
[[nodiscard]] std::size_t write(const Packet& packet, std::byte* to) noexcept;

/// Nothing if it is no packet. The last `size` bytes follow the header of a SHORT, GROUP, BUNDLE or
/// REMOTE; the last `name` bytes of a REQUEST_READ are the name.
[[nodiscard]] std::optional<Packet> read(std::span<const std::byte> bytes) noexcept;

/// The length that stands before each packet of a BUNDLE.
using BundledLength = std::uint32_t;

/// Calls `use` with each packet of what follows a BUNDLE's header, until that answers false. False:
/// or a length is none.
template <class Use>
[[nodiscard]] bool for_each_bundled(std::span<const std::byte> bytes, Use&& use) {
    while (!bytes.empty()) {
        BundledLength length = 0;
        if (bytes.size() < sizeof length) return false;
        std::memcpy(&length, bytes.data(), sizeof length);
        bytes = bytes.subspan(sizeof length);
        if (length > bytes.size() || !use(bytes.first(length))) return false;
        bytes = bytes.subspan(length);
    }
    return true;
}

}  // namespace mpi_channel
