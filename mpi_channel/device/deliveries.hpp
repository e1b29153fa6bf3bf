// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Receives that wait, and messages on their way into them, as Receiving
/// (mpi_channel/device/receiving.hpp) notes them down.
///
/// Thread safety: as of plain memory.

#include "mpi_channel/device/matching.hpp"
#include "mpi_channel/device/parts.hpp"
#include "mpi_channel/device/requests.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace mpi_channel {

/// A receive that is not over.
struct WaitingReceive : Receive {
    WaitingReceive() = default;
    explicit WaitingReceive(const ReceiveOrder& its_order) noexcept : order(its_order) {
        wanted = {order.from, order.tag, order.ignore};
        capacity = size_of(order.parts);
        least = order.least;
    }
    std::uint32_t number = 0;
    ReceiveOrder order;
    unsigned on_their_way = 0;  ///< messages
    bool over = false;          ///< takes no more
    bool is_silent = false;
};

/// A message on its way into a receive.
struct Delivery {
    std::uint32_t number = 0;
    WaitingReceive* receive = nullptr;
    Placement placement;
    Envelope envelope;
    std::optional<std::uint32_t> data;
    std::size_t arrived = 0;
    std::size_t cost = 0;       ///< of its credit
    bool is_awaited = false;    ///< OK_TO_SEND has left, DATA has not come
    std::uint64_t address = 0;  ///< of one that is read from the sender's memory
    std::uint32_t send = 0;     ///< the sender's number of that
    unsigned far_reads = 0;     ///< stretches of it that the fabric still reads
    bool is_unread = false;     ///< one of them has failed
};

}  // namespace mpi_channel
