// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Memory for what is under way: a piece is copied into one once, for all nodes that get it, and
/// the memory is used again when each of them has it.
///
/// Terms: piece, mark: docs/design/fabric-link.md.
/// Invariants: a piece is free exactly while it has no users; there are never more than kMaxBytes
///   of them.
/// Thread safety: one user at a time. Progress: take() allocates a slab now and then.
/// Units: bytes.

#include "rmem/error.hpp"
#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/udp/protocol/format.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace rmem::fabric {

inline constexpr std::size_t kMarkBytes = 8;
/// Without a mark.
inline constexpr std::size_t kMaxPieceBytes =
    std::max(udp::Carrier::kMaxBytesInBatch / 4 * 4, udp::kMaxPayload);

struct Piece {
    std::byte* memory = nullptr;  ///< room for the mark, then the datagrams
    std::size_t room = 0;         ///< for datagrams
    std::size_t length = 0;       ///< of these
    unsigned datagrams = 0;
    unsigned users = 0;
    void* registration = nullptr;  ///< as the provider named it, where it asks for that

    std::byte* datagram_bytes() const noexcept { return memory + kMarkBytes; }
};

class RMEM_API Pieces {
public:
    static constexpr std::size_t kShortBytes = 2048 - kMarkBytes;
    static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

    /// Where the provider wants to know memory from which it sends.
    using Register = std::function<void*(std::byte* memory, std::size_t bytes)>;
    explicit Pieces(Register registrar);

    /// An empty one with that room and one user, the caller; null: there are kMaxBytes under way.
    [[nodiscard]] Piece* take(std::size_t bytes);
    static void use(Piece& piece) noexcept { ++piece.users; }
    /// One user less.
    void leave(Piece& piece) noexcept;

    std::size_t in_use() const noexcept { return in_use_; }

private:
    struct Class {
        std::size_t room;
        std::size_t a_slab;  ///< pieces
        std::vector<Piece*> free{};
    };
    Class& class_of(std::size_t bytes) noexcept { return bytes <= kShortBytes ? short_ : long_; }
    void grow(Class& of);

    Register registrar_;
    Class short_{kShortBytes, 64}, long_{kMaxPieceBytes, 4};
    std::size_t bytes_ = 0, in_use_ = 0;
    std::vector<std::unique_ptr<std::byte[]>> memory_;
    std::vector<std::unique_ptr<Piece[]>> pieces_;
};

}  // namespace rmem::fabric
