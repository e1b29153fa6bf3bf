// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Another node's batches: put in order, NAKs for what is missing, the last ones kept for others.
///
///     stream.offer(batch.sequence(), batch.body(), now);
///     stream.note_newest(widened(header.newest, stream.applied()), now);
///     while (auto body = stream.take()) apply(Batch(*body));
///     stream.send_naks(now, [](std::uint64_t first, std::uint64_t count) { … });   // when due
///
/// Terms
///   applied   the sequence up to which take() has given all
///   gap       batches between it and the newest that is known of, which are not here
/// NAKs: one names a gap after a back-off that depends on the place in the ring (a node that hears
///   another's NAK for it sends none), and again at intervals that double until something comes.
///   What shows up missing meanwhile is named at once, too.
/// Invariants: take() gives each batch once, in order, from the first on. Of the last
///   `most_batches` applied ones all are kept: a sender is at most that far ahead of its slowest
///   receiver.
/// Threads: one user at a time. Progress: no call waits or allocates; send_naks() takes the time of
///   a look at each place of the window.
/// Trust: sequences are bounded by the window; what lies outside is refused.

#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/batch_history.hpp"
#include "rmem/link/udp/protocol/retransmit_times.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace rmem::udp {

class RMEM_API InStream {
public:
    static constexpr unsigned kMaxRanges = 32;  ///< named at a time: what a datagram has room for

    enum class Offer : std::uint8_t {
        taken,
        known,    ///< a second time: another's NAK named it, or it was repeated on the way
        too_far,  ///< beyond the window: no member sends that
        too_large
    };

    /// `first`: the sequence with which the stream begins here.
    InStream(std::uint64_t first, std::uint32_t most_batches, std::size_t most_bytes);

    std::uint64_t applied() const noexcept { return next_ - 1; }
    /// Something was taken.
    bool has_begun() const noexcept { return next_ != first_; }
    std::uint64_t newest() const noexcept { return newest_; }
    bool has_gap() const noexcept { return newest_ >= next_; }

    /// A batch has come.
    Offer offer(std::uint64_t sequence, std::span<const std::byte> body, std::int64_t now) noexcept;
    /// The origin has sent all up to this.
    void note_newest(std::uint64_t sequence, std::int64_t now) noexcept;
    /// The next batch in order, to be applied; valid until the next offer().
    std::optional<std::span<const std::byte>> take() noexcept;
    /// One of the last, for a node that lacks it; empty when it is not here.
    std::span<const std::byte> body(std::uint64_t sequence) const noexcept {
        return history_.find(sequence);
    }

    // ---- NAKs
    /// `steps`: how far this node comes behind the first that sends a NAK.
    void set_times(const RetransmitTimes& times, unsigned steps) noexcept {
        times_ = times;
        steps_ = steps;
    }
    /// When send_naks() has something to say; kNever when nothing is missing.
    std::int64_t nak_due_ns() const noexcept { return std::min(first_due_ns_, again_due_ns_); }
    /// If it is due: calls say(first, count) for each range that is missing, up to kMaxRanges.
    template <class Say>
    void send_naks(std::int64_t now, Say say);
    /// Another node's NAK has named these.
    void on_other_nak(std::uint64_t first, std::uint64_t count, std::int64_t now) noexcept;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    bool is_missing(std::uint64_t sequence) const noexcept { return !history_.contains(sequence); }
    /// The first missing one from there on, or `end`.
    std::uint64_t find_missing(std::uint64_t from, std::uint64_t end) const noexcept;
    void notice_gap(std::int64_t now) noexcept;
    [[nodiscard]] bool begin_nak(std::int64_t now, std::uint64_t& from) noexcept;
    void nak_sent_up_to(std::uint64_t end, std::int64_t now) noexcept;

    BatchHistory history_;
    std::uint64_t first_;
    std::uint64_t next_;
    std::uint64_t newest_;
    std::uint64_t nak_end_;  ///< what is missing before it was in a NAK already
    RetransmitTimes times_;
    unsigned steps_ = 0;
    unsigned naks_unanswered_ = 0;        ///< times without an answer
    std::int64_t first_due_ns_ = kNever;  ///< for what no NAK has named yet
    std::int64_t again_due_ns_ = kNever;
};

// ---- Inline definitions

template <class Say>
void InStream::send_naks(std::int64_t now, Say say) {
    std::uint64_t from = 0;
    if (!begin_nak(now, from)) return;
    const std::uint64_t end = newest_ + 1;
    for (unsigned ranges = 0; ranges < kMaxRanges && from < end; ++ranges) {
        const std::uint64_t first = find_missing(from, end);
        if (first == end) {
            from = end;
            break;
        }
        for (from = first; from < end && is_missing(from);) ++from;
        say(first, from - first);
    }
    nak_sent_up_to(from, now);
}

}  // namespace rmem::udp
