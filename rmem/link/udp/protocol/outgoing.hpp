// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The datagrams that a core has filled and that its user sends: after each call of the core, in
/// order.
///
///     core.on_datagram(bytes, now);
///     core.outgoing().drain([&](const OutgoingDatagram& one) { socket.send(one.bytes); });
///
/// A datagram is composed in the buffer in which it leaves: take_over() takes a full buffer and
/// returns an empty one, so nothing is copied.
/// Invariant: every place has a buffer of its own, full or empty, and so has every writer.
/// Threads: one user at a time. Progress: no call waits. Memory: as many buffers as one call of the
/// core has filled at most, but no more than kMaxOutgoing; what is beyond is not sent, and
/// counted, as with a host that has no room.

#include "rmem/error.hpp"
#include "rmem/link/udp/protocol/format.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rmem::udp {

inline constexpr std::size_t kMaxOutgoing = 2048;  ///< datagrams; two of the largest windows

struct OutgoingDatagram {
    enum class To : bool { all_nodes, namesakes };  ///< namesakes: with this node's number

    std::span<std::byte> bytes;
    To to = To::all_nodes;
};

class RMEM_API Outgoing {
public:
    // ---- For a core, which fills them
    /// A writer's first buffer.
    [[nodiscard]] std::span<std::byte> lend();
    /// A writer ends, which has that buffer.
    void give_back(std::span<std::byte> buffer) noexcept;
    /// A datagram in a writer's buffer; returns the writer's next one.
    [[nodiscard]] std::span<std::byte> take_over(std::span<std::byte> datagram,
                                                 OutgoingDatagram::To to) {
        if (next_ == end_ && !grow()) [[unlikely]]
            return {datagram.data(), kMaxPayload};
        const std::span empty(next_->bytes.data(), kMaxPayload);
        *next_++ = {datagram, to};
        return empty;
    }

    // ---- For its user, which sends them
    [[nodiscard]] bool is_empty() const noexcept { return next_ == places_.data(); }
    [[nodiscard]] std::size_t count() const noexcept {
        return static_cast<std::size_t>(next_ - places_.data());
    }
    /// Calls `send` with each, which fills none.
    template <class Send>
    void drain(Send&& send) {
        OutgoingDatagram* const first = places_.data();
        for (const OutgoingDatagram* at = first; at != next_; ++at) send(*at);
        next_ = first;
    }
    /// Datagrams that were not sent.
    [[nodiscard]] std::uint64_t no_room() const noexcept { return no_room_; }

private:
    bool grow();

    std::vector<OutgoingDatagram> places_;
    OutgoingDatagram* next_ = nullptr;  ///< before it are the filled ones
    OutgoingDatagram* end_ = nullptr;   ///< of the places
    std::uint64_t no_room_ = 0;
    std::vector<std::unique_ptr<std::byte[]>> buffers_;  ///< all
    std::vector<std::byte*> spare_;                      ///< of writers that have ended
};

}  // namespace rmem::udp
