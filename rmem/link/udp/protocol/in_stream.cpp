// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/in_stream.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/udp/protocol/out_stream.hpp"

namespace rmem::udp {

/// Twice the window: what waits for its turn, and behind it what was applied last.
InStream::InStream(std::uint64_t first, std::uint32_t most_batches, std::size_t most_bytes)
    : history_(2 * most_batches, most_bytes, 2 * kMaxWindowBytes),
      first_(first),
      next_(first),
      newest_(first - 1),
      nak_end_(first) {}

InStream::Offer InStream::offer(std::uint64_t sequence, std::span<const std::byte> body,
                                std::int64_t now) noexcept {
    if (sequence < next_ || history_.contains(sequence)) return Offer::known;
    if (sequence - next_ >= history_.places() / 2) return Offer::too_far;
    if (!history_.put(sequence, body)) return Offer::too_large;
    newest_ = std::max(newest_, sequence);
    notice_gap(now);
    return Offer::taken;
}

void InStream::note_newest(std::uint64_t sequence, std::int64_t now) noexcept {
    if (sequence <= newest_ || sequence - next_ >= history_.places() / 2) return;
    newest_ = sequence;
    notice_gap(now);
}

std::optional<std::span<const std::byte>> InStream::take() noexcept {
    if (is_missing(next_)) return std::nullopt;
    const std::span<const std::byte> body = history_.find(next_++);
    RMEM_CHECK(next_ <= newest_ + 1 && newest_ + 1 - next_ <= history_.places() / 2);
    if (!has_gap()) {
        first_due_ns_ = again_due_ns_ = kNever;
        naks_unanswered_ = 0;
    }
    return body;
}

// ---- NAKs

std::uint64_t InStream::find_missing(std::uint64_t from, std::uint64_t end) const noexcept {
    while (from < end && !is_missing(from)) ++from;
    return from;
}

/// Something may be missing that no NAK has named yet.
void InStream::notice_gap(std::int64_t now) noexcept {
    if (first_due_ns_ != kNever) return;
    const std::uint64_t end = newest_ + 1;
    nak_end_ = find_missing(std::max(nak_end_, next_), end);
    if (nak_end_ < end) first_due_ns_ = now + times_.nak_backoff_ns(steps_);
}

/// From where on a NAK is due; false while nothing is due.
bool InStream::begin_nak(std::int64_t now, std::uint64_t& from) noexcept {
    if (now < nak_due_ns()) return false;
    const bool is_again = now >= again_due_ns_;
    from = is_again ? next_ : std::max(nak_end_, next_);
    if (is_again) ++naks_unanswered_;
    first_due_ns_ = kNever;
    return true;
}

void InStream::nak_sent_up_to(std::uint64_t end, std::int64_t now) noexcept {
    nak_end_ = std::max(nak_end_, end);
    if (find_missing(next_, nak_end_) == nak_end_) {
        again_due_ns_ = kNever;
    } else {
        again_due_ns_ = now + doubled(times_.nak_retry_ns(), naks_unanswered_);
    }
    notice_gap(now);
}

/// If that is all that this node's NAK would name, none is needed: the answer goes to all nodes.
void InStream::on_other_nak(std::uint64_t first, std::uint64_t count, std::int64_t now) noexcept {
    if (first_due_ns_ == kNever || count == 0) return;
    const std::uint64_t missing = find_missing(std::max(nak_end_, next_), newest_ + 1);
    if (missing < first || missing - first >= count) return;
    first_due_ns_ = kNever;
    nak_sent_up_to(std::min(first + std::min(count, newest_ + 1), newest_ + 1), now);
}

}  // namespace rmem::udp
