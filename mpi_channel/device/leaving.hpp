// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What waits to leave for a rank, as Sending (mpi_channel/device/sending.hpp) notes it down.
///
/// Thread safety: as of plain memory.

#include "mpi_channel/device/packets.hpp"
#include "mpi_channel/device/parts.hpp"
#include "mpi_channel/device/remote_packets.hpp"
#include "mpi_channel/device/requests.hpp"
#include "rmem/link/far_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace mpi_channel {

/// A REMOTE packet that is to leave, and the bytes that go with it.
struct RemoteToSend {
    RemotePacket packet;
    std::optional<std::uint32_t> data;  ///< a word for the target
    const Parts* parts = nullptr;       ///< they stay until the answer; null: `copy`
    std::size_t at = 0;                 ///< in these
    std::size_t bytes = 0;
    std::vector<std::byte> copy;
};

/// A send that has not left at once.
struct Send {
    std::uint32_t number = 0;
    SendOrder order;
    std::size_t size = 0;
    std::vector<std::byte> copy;
    bool asked = false;                         ///< it has asked, and is not answered yet
    bool offered = false;                       ///< to be read where it lies
    std::optional<rmem::FarMemory::Place> far;  ///< or through the fabric
};

/// A packet, bulk of a send, or both.
struct Leaving {
    Packet packet;
    bool has_packet = false;  ///< it has not left yet
    Send* send = nullptr;     ///< without a packet: its protocol is still to be chosen
    bool asks = false;        ///< the send is not over when this has left
    std::size_t left = 0;     ///< bytes of the bulk
    std::unique_ptr<RemoteToSend> remote;
};

}  // namespace mpi_channel
