// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Go-Back-N layer: both ends of one edge, without clock, network or memory of messages in
/// flight but the sender's.
///
/// The sender numbers messages and keeps them until they are acknowledged. It has up to `window` of
/// them on their way, and begins again with the first unacknowledged one when no answer comes in
/// time or the receiver says that something is missing. The receiver takes the number it awaits and
/// nothing else.
///
/// Times follow from the answers. An answer is awaited for the smoothed round trip and four times
/// its variation (half of it at least), twice as long after each silence until one is measured
/// again; a message sent again is no sample. The window grows by one with each window acknowledged
/// while round trips stay below twice the shortest one (beyond that, messages queue up rather than
/// travel), and is halved when something was lost.
///
/// Invariants: of the messages kept, those on their way are the first, and none was sent before one
/// in front of it; the receiver delivers no number twice.
/// Time and actions: `now` is passed in; what is to be sent is asked for (`to_send`), and told when
/// the network has taken it.
/// Thread safety: one thread. Progress: a sender that gets no answer kMaxSilences times in a row
/// is `broken`.
/// Units: nanoseconds. Source: the paper names the protocol (5.2) and no more: all of this is a
/// reconstruction.

#include "rmem/base/check.hpp"
#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace ports::dp {

class RMEM_API GoBackNSender {
public:
    static constexpr std::size_t kMaxWindow = 64;
    static constexpr std::size_t kFirstWindow = 4;
    static constexpr std::int64_t kFirstPatienceNs = 10'000'000;  ///< before anything was measured
    static constexpr std::int64_t kLeastPatienceNs = 100'000;
    static constexpr std::int64_t kMaxPatienceNs = 1'000'000'000;
    static constexpr unsigned kMaxSilences = 12;

    /// `first`: the first message's number, the same at both ends.
    explicit GoBackNSender(std::uint16_t generation, std::uint32_t first = 0)
        : generation_(generation), first_(first), lost_before_(first) {}

    /// Starts again, for a receiver that may have forgotten: numbers begin at 0.
    std::uint16_t generation() const noexcept { return generation_; }

    [[nodiscard]] bool has_room() const noexcept { return kept_.size() < window_; }
    [[nodiscard]] bool is_idle() const noexcept { return kept_.empty(); }
    [[nodiscard]] bool is_broken() const noexcept { return silences_ >= kMaxSilences; }
    std::size_t window() const noexcept { return window_; }
    [[nodiscard]] std::int64_t patience_ns() const noexcept;

    /// Takes a message over; has_room() first.
    void push(std::vector<std::byte> message) {
        RMEM_CHECK(has_room());
        kept_.push_back(std::move(message));
    }

    /// The next message for the network; null: none.
    [[nodiscard]] const std::vector<std::byte>* to_send() const noexcept {
        return sent_ < kept_.size() ? &kept_[sent_] : nullptr;
    }
    [[nodiscard]] std::uint32_t sequence_to_send() const noexcept {
        return first_ + static_cast<std::uint32_t>(sent_);
    }
    /// The network has taken it. Whether it was sent before.
    bool sent(std::int64_t now) noexcept;

    /// The receiver awaits this number next; `gap`: something behind it has arrived or was refused,
    /// so it is to be sent again.
    void on_ack(std::uint32_t awaited, bool gap, std::int64_t now);
    /// Whether it was time to begin again.
    bool on_tick(std::int64_t now) noexcept;
    /// When on_tick has something to do; kNever: nothing is open.
    [[nodiscard]] std::int64_t next_tick_ns() const noexcept;

private:
    void go_back() noexcept;
    void measure(std::int64_t round_trip) noexcept;
    void lose() noexcept;

    std::uint16_t generation_;
    std::deque<std::vector<std::byte>> kept_;
    std::uint32_t first_;        ///< number of kept_.front()
    std::size_t sent_ = 0;       ///< of those kept, as many from the front are on their way
    std::size_t ever_sent_ = 0;  ///< and how many were
    std::size_t window_ = kFirstWindow;
    std::size_t acknowledged_ = 0;  ///< since the window changed
    std::uint32_t lost_before_;     ///< a loss below this number has been counted
    bool sampling_ = false;
    std::uint32_t sample_ = 0;
    std::int64_t sample_ns_ = 0;
    std::int64_t since_ns_ = 0;  ///< the last answer, or sending after none was due
    std::int64_t smooth_ns_ = 0, variation_ns_ = 0, shortest_ns_ = 0;
    unsigned silences_ = 0;
    unsigned doublings_ = 0;  ///< of the patience, since it was measured
};

class RMEM_API GoBackNReceiver {
public:
    static constexpr unsigned kAckEvery = 2;

    explicit GoBackNReceiver(std::uint32_t first = 0) : first_(first), awaited_(first) {}

    /// What to do with a message.
    enum class Verdict {
        deliver,  ///< tell `delivered` or `refused`
        old,      ///< it was delivered before
        gap,      ///< something before it is missing
        unknown   ///< of a sender whose beginning was not seen
    };
    [[nodiscard]] Verdict on_message(std::uint16_t generation, std::uint32_t sequence) noexcept;
    void delivered() noexcept {
        RMEM_CHECK(met_);
        ++awaited_;
        ++owed_;
        told_gap_ = false;
    }
    /// There was no room; once there is, `has_room_again` asks for it.
    void refused() noexcept { blocked_ = true; }
    [[nodiscard]] bool is_blocked() const noexcept { return blocked_; }
    void has_room_again() noexcept;

    [[nodiscard]] bool owes_ack() const noexcept { return owed_ != 0; }
    [[nodiscard]] bool owes_ack_now() const noexcept { return owed_ >= kAckEvery || gap_; }
    [[nodiscard]] bool gap() const noexcept { return gap_; }
    std::uint16_t generation() const noexcept { return generation_; }
    std::uint32_t awaited() const noexcept { return awaited_; }
    void acknowledged() noexcept {
        owed_ = 0;
        gap_ = false;
    }

private:
    bool met_ = false;
    std::uint16_t generation_ = 0;
    std::uint32_t first_, awaited_;
    unsigned owed_ = 0;      ///< messages, or repetitions, not answered yet
    bool gap_ = false;       ///< to be told
    bool told_gap_ = false;  ///< once for each gap
    bool blocked_ = false;
};

}  // namespace ports::dp
