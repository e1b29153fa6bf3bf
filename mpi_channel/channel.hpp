// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The channel interface: the seam between MPI and the billboard, as in the paper (§4) and in
/// MPICH-1.
///
///     MPID_SendControl       send_control         a packet to a rank
///     MPID_SendControlBlock  send_control_block   the same, of two parts: header and message
///     MPID_RecvAnyControl    recv_any_control     the next packet of anybody
///     MPID_ControlMsgAvail   control_msg_avail    whether there is one
///     MPID_SendChannel       send_channel         bulk to a rank: bytes that a packet has
///                            announced
///     MPID_RecvFromChannel   recv_from_channel    bulk of a rank
///
/// and what the paper added: mcast_control, a packet to several ranks by one post.
///
/// No call waits, unlike in 1999, where two ranks that sent to each other could wait for each
/// other: what finds no room is BBP_EAGAIN, and nothing of it has been sent. What one rank sends to
/// another comes in its order, packets and bulk alike: so after a packet that announces bulk the
/// receiver takes that, with recv_from_channel, before anything else of that rank; recv_any_control
/// says so (kBulk) when it meets it.
///
/// Errors: the billboard's codes; BBP_EPEER with `*from`'s or the receiver's death.
/// Progress, thread safety: billboard/endpoint.hpp. The endpoint outlives the channel.

#include "mpi_channel/endpoint_transport.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mpi_channel {

class Channel : public EndpointTransport {
public:
    explicit Channel(billboard::Endpoint& endpoint);

    int send_control(Bytes packet, unsigned to) { return send_control_block(packet, {}, to); }
    /// It stays the caller's until the next call; BBP_EAGAIN: there is none; BBP_ESIZE: what
    /// `*from` has sent is longer than packets are, and gone.
    int recv_any_control(Bytes* packet, unsigned* from);
    bool control_msg_avail();

private:
    std::vector<std::byte> in_;  ///< a packet that has come, a longer one
};

}  // namespace mpi_channel
