// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's own batches: kept until every receiver has them, and retransmitted.
///
/// Terms
///   receiver   a node that takes the stream; it counts from a first sequence on
///   window     how much may be under way to the slowest receiver: batches, their bytes, and what
///              a receiver's host takes for them (bytes_charged)
///   probe      the newest batch once more, because nobody has said that it arrived: a node that
///              has it acknowledges at once, one that lacks something sends a NAK
/// Invariants: what a receiver lacks is in the history. Sequences count from the first, by default
/// 1.
/// Threads: one user at a time. Progress: no call waits; acknowledging takes the time of a look at
///   each receiver at most. Errors: add() throws std::bad_alloc, and nothing changes.
/// Trust: sequences that a receiver names are bounded by what was sent.

#include "rmem/base/node_set.hpp"
#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/batch_history.hpp"
#include "rmem/link/udp/protocol/format.hpp"
#include "rmem/link/udp/protocol/retransmit_times.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rmem::udp {

/// Of bodies under way at most: more does not make a stream faster, and leaves the processor's
/// caches.
inline constexpr std::size_t kMaxWindowBytes = std::size_t{3} << 19;

class RMEM_API OutStream {
public:
    /// `most_batches`: the largest window; a power of two. `most_bytes`: of a batch's body.
    /// `first`: the first one's sequence.
    OutStream(std::uint32_t most_batches, std::size_t most_bytes, std::uint64_t first = 1);

    // ---- Receivers
    /// From the next batch on the node is a receiver; returns that one's sequence.
    std::uint64_t admit(unsigned node) noexcept;
    /// What it lacks counts no more. True if that made room.
    bool drop(unsigned node) noexcept;
    const NodeSet& receivers() const noexcept { return receivers_; }
    /// What receivers' hosts have for batches under way, in bytes as charged. What is under way
    /// stays so.
    void set_window(std::size_t charged) noexcept { window_ = charged; }
    std::size_t window() const noexcept { return window_; }
    /// The same as a number of batches whose datagrams have `payload` bytes.
    std::uint32_t window(std::size_t payload) const noexcept {
        const std::size_t most =
            std::min(window_ / bytes_charged(payload), kMaxWindowBytes / payload);
        return static_cast<std::uint32_t>(std::min<std::size_t>(most, history_.places()));
    }

    // ---- Sending
    /// For that many more, whose datagrams have up to `payload` bytes.
    bool has_room(std::uint32_t batches, std::size_t payload) const noexcept {
        return newest_ + batches <= least_ + history_.places() &&
               bytes_ + batches * payload <= kMaxWindowBytes &&
               charged_ + batches * bytes_charged(payload) <= window_;
    }
    std::uint64_t next_sequence() const noexcept { return newest_ + 1; }
    std::uint64_t newest() const noexcept { return newest_; }
    /// All receivers have all up to this.
    std::uint64_t acknowledged() const noexcept { return least_; }
    bool is_idle() const noexcept { return least_ == newest_; }
    /// Keeps the next batch, which is sent now. There is room.
    void add(std::span<const std::byte> body, std::int64_t now);
    /// Empty for one that every receiver has, or that was not sent.
    std::span<const std::byte> body(std::uint64_t sequence) const noexcept;

    // ---- What receivers say
    /// The node has all up to this. True if that made room.
    bool on_ack(unsigned node, std::uint64_t up_to, std::int64_t now) noexcept;
    /// What the node has acknowledged.
    std::uint64_t acked_by(unsigned node) const noexcept { return acked_[node]; }
    /// Somebody lacks these: they are to be sent again, once for all NAKs of about the same
    /// time.
    void on_nak(std::uint64_t first, std::uint64_t count, std::int64_t now) noexcept;

    // ---- Sending again
    /// The next batch that a NAK has named, the oldest first.
    [[nodiscard]] std::optional<std::uint64_t> next_retransmission(std::int64_t now) noexcept;
    /// When probe() is due; kNever while nothing is under way.
    std::int64_t probe_due_ns() const noexcept { return probe_due_ns_; }
    /// How many have had no answer.
    unsigned probes() const noexcept { return probes_; }
    /// If it is due: the batch to be sent again.
    [[nodiscard]] std::optional<std::uint64_t> probe(std::int64_t now) noexcept;
    void set_times(const RetransmitTimes& times) noexcept { times_ = times; }

private:
    struct Again {
        std::int64_t sent_ns = INT64_MIN;  ///< again, last
        bool wanted = false;
    };

    bool update_least() noexcept;
    void count(std::uint64_t sequence, bool is_added) noexcept;
    void schedule_probe(std::int64_t now) noexcept;
    Again& again(std::uint64_t sequence) noexcept { return again_[sequence & (again_.size() - 1)]; }

    BatchHistory history_;
    std::vector<Again> again_;                         ///< of each place of the history
    std::uint64_t wanted_first_ = 0, wanted_end_ = 0;  ///< among these are those to be sent again
    NodeSet receivers_;
    std::array<std::uint64_t, kMaxNodes> acked_{};
    std::uint64_t newest_;
    std::uint64_t least_;
    std::size_t bytes_ = 0, charged_ = 0;  ///< under way
    std::size_t window_ = kMaxWindowBytes;
    RetransmitTimes times_;
    unsigned probes_ = 0;  ///< without an answer
    std::int64_t probe_due_ns_ = kNever;
};

}  // namespace rmem::udp
