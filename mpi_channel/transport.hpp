// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Transport concept: it carries the device's packets and bulk. One is the channel interface
/// on the billboard (mpi_channel/channel.hpp), the other is the same over Fast Messages
/// (mpi_channel/fm/fm_transport.hpp). All ranks have the same.
///
/// No call waits: a call that finds no room returns BBP_EAGAIN, and has sent nothing. Packets and
/// bulk of one sender arrive in the order in which they were sent: so after a packet that announces
/// bulk the receiver takes that before anything else of that rank.

#include "billboard/endpoint.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mpi_channel {

struct TransportCounters {
    std::uint64_t packets_sent = 0;
    std::uint64_t packets_received = 0;
    std::uint64_t bulk_sent = 0;      ///< pieces
    std::uint64_t bulk_received = 0;  ///< pieces
    std::uint64_t multicasts = 0;     ///< packets to several ranks, by one call each
};

/// recv_any_control: what comes next of that rank is bulk.
inline constexpr int kBulk = 1;

template <class T>
concept Transport = requires(T t, const T c, std::span<const std::byte> bytes, unsigned rank,
                             std::span<const int> ranks, std::span<const std::byte>* packet,
                             unsigned* from, std::size_t size, std::size_t* sizes,
                             std::span<std::byte> room) {
    { c.rank() } -> std::same_as<unsigned>;
    { c.ranks() } -> std::same_as<unsigned>;
    { c.packet_most() } -> std::same_as<std::size_t>;  // header and message together
    { t.send_control_block(bytes, bytes, rank) } -> std::same_as<int>;  // (header, message, to)
    { t.mcast_control(bytes, bytes, ranks) } -> std::same_as<int>;      // (header, message, to)
    { t.recv_any_control(packet, from) } -> std::same_as<int>;
    { t.ask_for(rank) } -> std::same_as<int>;
    { t.send_channel(bytes, rank, sizes) } -> std::same_as<int>;  // (bulk, to, &sent)
    { c.has_backlog() } -> std::same_as<bool>;  // takes calls to leave, though it was accepted
    t.expect_bulk(rank, size);
    { t.recv_from_channel(room, rank, sizes) } -> std::same_as<int>;
    { T::kHasBarriers } -> std::convertible_to<bool>;
    {
        t.barrier(ranks, rank)
        } -> std::same_as<int>;  // (members in rising order, id); if it has any
    { c.counters() } -> std::same_as<TransportCounters>;
};

/// Number of the longest packets that fit a partition while their receivers are away.
inline constexpr std::size_t kPacketsInPartition = 16;
inline constexpr std::size_t kMaxPacket = 16 * 1024;
[[nodiscard]] inline std::size_t packet_most_in(const billboard::Endpoint& endpoint) noexcept {
    return std::min(endpoint.partition_bytes() / kPacketsInPartition, kMaxPacket);
}

}  // namespace mpi_channel
