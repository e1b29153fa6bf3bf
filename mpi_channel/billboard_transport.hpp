// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Packets and bulk directly on the billboard, without the channel interface between: the paper's first future direction (§6).
///
/// What it saves: a packet that does not fit a slot is composed in the partition and read there, where the channel interface,
/// whose callers own their packets' memory, copies it once more at either end.
///
/// Contract: mpi_channel/transport.hpp. A packet stays where it is until the next call of recv_any_control.
/// Progress, thread safety: billboard/endpoint.hpp. The endpoint outlives it.

#include "mpi_channel/bulk.hpp"
#include "mpi_channel/transport.hpp"

#include <array>

namespace mpi_channel {

class BillboardTransport {
public:
    using Bytes = std::span<const std::byte>;

    explicit BillboardTransport(billboard::Endpoint& endpoint);
    ~BillboardTransport() { release(); }
    BillboardTransport(const BillboardTransport&) = delete;
    BillboardTransport& operator=(const BillboardTransport&) = delete;

    unsigned rank() const noexcept { return endpoint_.rank(); }
    unsigned ranks() const noexcept { return endpoint_.ranks(); }
    std::size_t packet_most() const noexcept { return packet_most_; }

    int send_control_block(Bytes header, Bytes message, unsigned to);
    int mcast_control(Bytes header, Bytes message, std::span<const int> to);
    int recv_any_control(Bytes* packet, unsigned* from);
    int ask_for(unsigned from);

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
    int post(Bytes header, Bytes message, std::span<const int> to);
    void release();

    billboard::Endpoint& endpoint_;
    Bulk bulk_;
    std::size_t packet_most_;
    std::array<std::byte, billboard::kInlineBytes> short_{};  ///< a packet that has come
    const void* view_ = nullptr;  ///< the packet given last, a longer one
    TransportCounters counters_;
};

}  // namespace mpi_channel
