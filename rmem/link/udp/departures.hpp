// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What leaves a node: what its programs wrote is put into datagrams (rmem/link/udp/outbox.hpp),
/// and these are handed to the carrier, many with one call where they are worth one.
///
/// Invariant: of what is in the stream and due nothing stays behind.
/// Thread safety: the engine's user; is_closed() by any thread. Progress: nothing waits.
/// Units: nanoseconds.

#include "rmem/base/relaxed.hpp"
#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/udp/outbox.hpp"
#include "rmem/link/udp/pacing.hpp"
#include "rmem/link/udp/protocol/core.hpp"
#include "rmem/ring/node_board.hpp"

#include <cstdint>

namespace rmem::udp {

class RMEM_API Departures {
public:
    /// All outlive it.
    Departures(Core& core, Outbox& outbox, Carrier& carrier, NodeBoard& board)
        : core_(core), outbox_(outbox), carrier_(carrier), board_(board) {}

    /// What the logs have is put into datagrams; full ones leave when they are worth a call of the
    /// host, and as `leaving` says the others. True if there was something to do.
    bool take(Outbox::Take what, Leaving leaving, std::int64_t now);
    /// What the core has filled leaves.
    void flush() noexcept {
        if (!core_.outgoing().is_empty() && !is_closed()) send_filled();
    }
    /// Nothing leaves any more: the program has closed the carrier's descriptors.
    void close() noexcept { is_closed_.set(true); }
    bool is_closed() const noexcept { return is_closed_.get(); }

    /// When the oldest write was made that has not left; kNever: all have.
    [[nodiscard]] std::int64_t open_since_ns() noexcept;
    /// When something was taken last.
    std::int64_t written_ns() const noexcept { return written_ns_; }
    /// For what the program that runs the engine has committed there was no room.
    bool lacks_room() const noexcept { return lacks_room_; }

private:
    void send_filled() noexcept;
    void show_processor() noexcept;

    Core& core_;
    Outbox& outbox_;
    Carrier& carrier_;
    NodeBoard& board_;
    int processor_ = -1;  ///< that the board shows
    std::int64_t written_ns_ = INT64_MIN / 2;
    std::int64_t unsent_since_ns_ = kNever;  ///< the oldest write in a datagram that is full
    bool lacks_room_ = false;
    Hint<bool> is_closed_{false};
};

}  // namespace rmem::udp
