// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The channel interface: the seam between MPI and the billboard, as in the paper (§4) and in MPICH-1.
///
///     MPID_SendControl       send_control         a packet to a rank
///     MPID_SendControlBlock  send_control_block   the same, of two parts: header and message
///     MPID_RecvAnyControl    recv_any_control     the next packet of anybody
///     MPID_ControlMsgAvail   control_msg_avail    whether there is one
///     MPID_SendChannel       send_channel         bulk to a rank: bytes that a packet has announced
///     MPID_RecvFromChannel   recv_from_channel    bulk of a rank
///
/// and what the paper added: mcast_control, a packet to several ranks by one post.
///
/// No call waits, unlike in 1999, where two ranks that sent to each other could wait for each other: what finds no room is
/// BBP_EAGAIN, and nothing of it has been sent. What one rank sends to another comes in its order, packets and bulk alike: so
/// after a packet that announces bulk the receiver takes that, with recv_from_channel, before anything else of that rank;
/// recv_any_control says so (kBulk) when it meets it.
///
/// Errors: the billboard's codes; BBP_EPEER with `*from`'s or the receiver's death.
/// Progress, thread safety: billboard/endpoint.hpp. The endpoint outlives the channel.

#include "mpi_channel/bulk.hpp"
#include "mpi_channel/transport.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mpi_channel {

class Channel {
public:
    using Bytes = std::span<const std::byte>;

    explicit Channel(billboard::Endpoint& endpoint);

    unsigned rank() const noexcept { return endpoint_.rank(); }
    unsigned ranks() const noexcept { return endpoint_.ranks(); }
    /// The longest packet, header and message together.
    std::size_t packet_most() const noexcept { return in_.size(); }

    // ---- Packets
    int send_control(Bytes packet, unsigned to) { return send_control_block(packet, {}, to); }
    /// A header of at most rmem::kShortBytes, if there is a message behind it.
    int send_control_block(Bytes header, Bytes message, unsigned to);
    int mcast_control(Bytes header, Bytes message, std::span<const int> to);
    /// It stays the caller's until the next call; BBP_EAGAIN: there is none; BBP_ESIZE: what `*from` has sent is longer than
    /// packets are, and gone.
    int recv_any_control(Bytes* packet, unsigned* from);
    bool control_msg_avail();
    /// What a rank's next call would meet: BBP_OK, BBP_EAGAIN: nothing waits, BBP_EPEER: nothing waits, and it is dead or has left.
    int ask_for(unsigned from);

    // ---- Bulk (mpi_channel/bulk.hpp)
    int send_channel(Bytes bulk, unsigned to, std::size_t* sent) {
        return bulk_.send(bulk, to, sent);
    }
    void expect_bulk(unsigned from, std::size_t bytes) noexcept { bulk_.expect(from, bytes); }
    int recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size) {
        return bulk_.receive(room, from, size);
    }

    /// The billboard's: BBP_EAGAIN until all of these ranks have come; call again.
    int barrier(std::span<const int> members, unsigned id) {
        return endpoint_.barrier_group(members, id, billboard::Deadline::now());
    }

    TransportCounters counters() const noexcept;

private:
    Bytes joined(Bytes header, Bytes message);

    billboard::Endpoint& endpoint_;
    Bulk bulk_;
    std::array<std::byte, billboard::kInlineBytes> short_in_{};  ///< a packet that has come
    std::vector<std::byte> in_;                                  ///< the same, a longer one
    std::vector<std::byte> out_;  ///< header and message, while they are sent
    TransportCounters counters_;
};

}  // namespace mpi_channel
