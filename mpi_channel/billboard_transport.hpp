// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Packets and bulk directly on the billboard, without the channel interface between: the paper's
/// first future direction (§6).
///
/// What it saves: a packet that does not fit a slot is read in the partition, where the channel
/// interface, whose callers own their packets' memory, copies it once more.
///
/// Contract: mpi_channel/transport.hpp. A packet stays where it is until the next call of
/// recv_any_control.
/// Progress, thread safety: billboard/endpoint.hpp. The endpoint outlives it.

#include "mpi_channel/endpoint_transport.hpp"

namespace mpi_channel {

class BillboardTransport : public EndpointTransport {
public:
    explicit BillboardTransport(billboard::Endpoint& endpoint) : EndpointTransport(endpoint) {}
    ~BillboardTransport() { release(); }
    BillboardTransport(const BillboardTransport&) = delete;
    BillboardTransport& operator=(const BillboardTransport&) = delete;

    int recv_any_control(Bytes* packet, unsigned* from);

private:
    void release();

    const void* view_ = nullptr;  ///< the packet given last, a longer one
};

}  // namespace mpi_channel
