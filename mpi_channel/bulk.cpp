// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/bulk.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mpi_channel {

namespace {

using billboard::Class;
using billboard::Deadline;

/// A piece is on its way while the next one is copied. Shorter ones cost more than they overlap.
constexpr std::size_t kPiecesInPartition = 4;
constexpr std::size_t kMaxPiece = 32 * 1024;

}  // namespace

Bulk::Bulk(billboard::Endpoint& endpoint)
    : endpoint_(endpoint),
      piece_most_(std::min(endpoint.partition_bytes() / kPiecesInPartition, kMaxPiece)),
      due_(endpoint.ranks()),
      pieces_(endpoint.ranks()) {}

int Bulk::send(Bytes bulk, unsigned to, std::size_t* sent) {
    *sent = 0;
    while (!bulk.empty()) {
        const Bytes piece = bulk.first(std::min(bulk.size(), piece_most_));
        const int result = endpoint_.send(static_cast<int>(to), piece.data(), piece.size(),
                                          Deadline::now(), Class::mpi);
        if (result == BBP_EAGAIN && *sent != 0) return BBP_OK;
        if (result != BBP_OK) return result;
        ++sent_;
        *sent += piece.size();
        bulk = bulk.subspan(piece.size());
    }
    return BBP_OK;
}

void Bulk::put(unsigned from, Bytes piece, const void* view) {
    pieces_[from] = {piece, view, true};
    ++unread_;
    ++received_;
}

std::optional<unsigned> Bulk::first_unread() const noexcept {
    for (unsigned r = 0; r < pieces_.size(); ++r) {
        if (pieces_[r].is_here) return r;
    }
    return std::nullopt;
}

int Bulk::receive(std::span<std::byte> room, unsigned from, std::size_t* size) {
    Piece& piece = pieces_[from];
    if (!piece.is_here) {
        const void* view = nullptr;
        std::size_t length = 0;
        const int result =
            endpoint_.view(static_cast<int>(from), &view, &length, Deadline::now(), Class::mpi);
        if (result < 0) return result;
        put(from, {static_cast<const std::byte*>(view), length}, view);
    }
    *size = std::min({room.size(), piece.bytes.size(), due_[from]});
    if (*size != 0) std::memcpy(room.data(), piece.bytes.data(), *size);
    piece.bytes = piece.bytes.subspan(*size);
    due_[from] -= *size;
    // More bytes than were announced go nowhere.
    if (piece.bytes.empty() || due_[from] == 0) release(piece);
    return BBP_OK;
}

void Bulk::release(Piece& piece) {
    const void* const view = std::exchange(piece, {}).view;
    --unread_;
    if (view != nullptr) endpoint_.release(view);
}

}  // namespace mpi_channel
