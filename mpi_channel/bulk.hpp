// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Bulk: bytes of a rank that a packet of it has announced, in pieces. A part of the channel.
///
/// Thread safety, errors: as of the endpoint, which outlives it.

#include "billboard/endpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mpi_channel {

class Bulk {
public:
    using Bytes = std::span<const std::byte>;

    explicit Bulk(billboard::Endpoint& endpoint);

    /// Some of it, from its beginning: how many bytes have left. The caller comes again with the
    /// rest.
    [[nodiscard]] int send(Bytes bulk, unsigned to, std::size_t* sent);

    /// `from` has announced that number of bytes: its next messages are bulk.
    void expect(unsigned from, std::size_t bytes) noexcept { due_[from] += bytes; }
    [[nodiscard]] bool is_due(unsigned from) const noexcept { return due_[from] != 0; }
    /// A piece that was met among packets; `view`: what is to be released after it, or null.
    void put(unsigned from, Bytes piece, const void* view);
    /// A rank of which a piece has come and is not all received.
    [[nodiscard]] std::optional<unsigned> unread() const noexcept {
        return unread_ == 0 ? std::nullopt : first_unread();
    }
    /// The next piece, in the order in which it was sent; BBP_EAGAIN: nothing more has come yet.
    /// The rest of a piece that is larger than the room comes with the next call.
    [[nodiscard]] int receive(std::span<std::byte> room, unsigned from, std::size_t* size);

    [[nodiscard]] std::uint64_t pieces_sent() const noexcept { return sent_; }
    [[nodiscard]] std::uint64_t pieces_received() const noexcept { return received_; }

private:
    struct Piece {
        Bytes bytes;
        const void* view = nullptr;
        bool is_here = false;
    };
    void release(Piece& piece);
    [[nodiscard]] std::optional<unsigned> first_unread() const noexcept;

    billboard::Endpoint& endpoint_;
    std::size_t piece_most_;
    std::vector<std::size_t> due_;  ///< of each rank
    std::vector<Piece> pieces_;     ///< of each rank
    unsigned unread_ = 0;           ///< pieces that are here
    std::uint64_t sent_ = 0, received_ = 0;
};

}  // namespace mpi_channel
