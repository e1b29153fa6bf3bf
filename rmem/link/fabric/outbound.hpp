// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What goes to each peer, in its order: what the provider has taken, what waits for it to have
/// room, and who cannot be reached just now. No library in it.
///
/// States of a peer
///   unmet        nothing has reached it yet: few pieces wait, the oldest are dropped
///   met          a piece has: what finds no room waits
///   connecting   either, while the provider has no room although it has nothing: it is asked
///                again after pauses that double from kRetryNs to kMaxRetryNs, and after
///                kConnectNs the peer is out of reach
///   out of reach a piece failed: what waits is dropped, and nothing is tried for a pause, which
///                doubles from kLeastPauseNs to kMaxPauseNs until a piece reaches it
/// Invariants
///   A peer is given pieces in the order in which they were sent; one that was dropped never comes
///   later.
///   What waits for a peer is at most kMaxWaiting pieces, kMaxUnmet before it is met; what the
///   provider has of a peer is at most kMaxGiven, and no more than said.
///   Each piece is left (Pieces::leave) as often as it was used.
/// Thread safety: one user at a time. Progress: no call waits. Units: nanoseconds.

#include "rmem/base/time.hpp"
#include "rmem/link/fabric/pieces.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace rmem::fabric {

class Wire {
public:
    enum class Given : std::uint8_t { taken, full, failed };

    Wire() = default;
    virtual ~Wire() = default;
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;

    /// taken: the piece stays until has_reached() or has_failed() is called for it. `racks`: the
    /// mark's, 0: without one.
    virtual Given give(unsigned peer, const Piece& piece, unsigned racks) noexcept = 0;
};

/// Datagrams that did not leave.
struct NotSent {
    std::uint64_t no_room = 0, refused = 0;
};

class RMEM_API Outbound {
public:
    static constexpr std::size_t kMaxWaiting = 4096;
    static constexpr std::size_t kMaxUnmet = 8;
    static constexpr unsigned kMaxGiven = 64;
    static constexpr std::int64_t kLeastPauseNs = 2'000'000;
    static constexpr std::int64_t kMaxPauseNs = 250'000'000;
    static constexpr std::int64_t kRetryNs = 200'000;
    static constexpr std::int64_t kMaxRetryNs = 20'000'000;
    static constexpr std::int64_t kConnectNs = 500'000'000;

    /// `most_given`: pieces that the provider may have for one peer.
    Outbound(unsigned peers, unsigned most_given, Pieces& pieces, Wire& wire);

    /// The caller keeps its use of the piece.
    void send(unsigned peer, Piece& piece, unsigned racks, std::int64_t now);
    /// The provider is through with one that it took. `address`: address_of() the peer when it did;
    /// what becomes of pieces for a former one says nothing of the peer.
    void has_reached(unsigned peer, unsigned address, Piece& piece) noexcept;
    void has_failed(unsigned peer, unsigned address, Piece& piece, std::int64_t now) noexcept;
    /// Offers what waits again.
    void retry(std::int64_t now);
    /// When retry() is worth a call; kNever: nothing waits.
    std::int64_t due_ns() const noexcept { return next_try_ns_; }

    /// It has been heard: it may be tried at once.
    void may_be_back(unsigned peer) noexcept;
    /// It has another address.
    void has_moved(unsigned peer) noexcept;
    unsigned address_of(unsigned peer) const noexcept { return peers_[peer].address; }
    [[nodiscard]] bool is_met(unsigned peer) const noexcept { return peers_[peer].is_met; }
    [[nodiscard]] bool is_out(unsigned peer) const noexcept { return peers_[peer].pause_ns != 0; }
    /// Grows when a peer is met, or gets out of reach.
    std::uint64_t changes() const noexcept { return changes_; }
    /// Pieces that wait, or that the provider has.
    std::size_t under_way() const noexcept { return waiting_ + given_; }
    std::size_t given() const noexcept { return given_; }
    const NotSent& not_sent() const noexcept { return not_sent_; }
    std::uint64_t sent() const noexcept { return sent_; }

private:
    struct Waiting {
        Piece* piece;
        unsigned racks;
    };
    struct Peer {
        std::deque<Waiting> waiting;
        unsigned given = 0;    ///< to its present address
        unsigned address = 0;  ///< counts them
        bool is_met = false;
        std::int64_t next_try_ns = 0, retry_ns = 0;  ///< of what waits
        std::int64_t full_since_ns = 0;              ///< without anything given; 0: it is not
        std::int64_t pause_ns = 0;                   ///< 0: it is not out of reach
        std::int64_t out_until_ns = 0;
    };

    [[nodiscard]] bool give(unsigned index, Piece& piece, unsigned racks, std::int64_t now);
    void wait(Peer& peer, Piece& piece, unsigned racks);
    void note_full(Peer& peer, std::int64_t now) noexcept;
    void retry_one(unsigned index, std::int64_t now);
    void drop(Peer& peer) noexcept;
    void lose(Peer& peer, std::int64_t now) noexcept;

    std::vector<Peer> peers_;
    const unsigned most_given_;
    Pieces& pieces_;
    Wire& wire_;
    std::size_t waiting_ = 0, given_ = 0;
    std::int64_t next_try_ns_ = kNever;
    std::uint64_t changes_ = 0, sent_ = 0;
    NotSent not_sent_;
};

}  // namespace rmem::fabric
