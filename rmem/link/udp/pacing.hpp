// SPDX-License-Identifier: Apache-2.0
#pragma once

/// When does a write leave the program that runs its node's engine? Nagle's algorithm, driven by
/// load: a committed write leaves at once; while the program only sends, committed writes stay in
/// its log (rmem/ring/write_log.hpp), and many leave together.
///
/// What waits on link udp, at most how long, and who sends it:
///
///   what waits                    how long                     who sends it
///   a committed write, no load    not at all                   commit, in the program's call
///   a committed write under load  until its datagrams are      the commit that finds it so; a
///                                 worth a call of the host,    program that waits; while it
///                                 the program waits, or        computes EngineHelper, after
///                                 kLazyNs has passed           kLazyNs, in a long stream up to
///                                                              EngineHelper::kMaxActiveNs
///   a write committed on wait     until the next commit, the   that commit; a program that waits;
///                                 program waits, or kLazyNs    while it computes EngineHelper,
///                                                              after kLookNs
///   a write without a commit      the same                     the same
///   a client's committed write    not at all                   commit rings the engine's bell
///   a client's other writes       until it commits or makes    the client; EngineWork::keep, each
///                                 progress                     kKeepNs
///   a delayed write (faults)      its delay                    Outbox::on_time
///   an acknowledgement            kAckNs, or a quarter of a    any datagram; Exchange::on_tick
///                                 window (peers.hpp)
///
/// Load: kLoad commits without a wait, none longer than kLazyNs after the one before has left: for
/// a later one nothing could have waited. Half of it is remembered over a wait, nothing over
/// kQuietNs without a commit. A message that the program takes in between is a wait, too, and so is
/// a write of another node to the users' memory: a program that reads it by plain loads may have
/// waited for it. So two programs that answer each other never reach it, and nor does one that
/// keeps a rhythm. News of another node's room is no rhythm: it comes with each message of a stream
/// that the node takes faster than they come.
///
/// When does it look for datagrams? A program that only sends does not look between its messages,
/// but each kLazyNs; one that answers does not look before its answer, since it looked when the
/// message came. A program that makes progress twice without a commit between waits for something.
///
/// Pure: no clock, socket or lock; it decides by what it is told.
/// Invariants: what is open has a time at which it is due; no write is older than the one before.
/// Thread safety: the program's thread.
/// Units: nanoseconds of one clock that does not go backwards, from 0.

#include "rmem/base/check.hpp"
#include "rmem/base/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace rmem::udp {

inline constexpr std::int64_t kLazyNs = 20'000;  ///< a write waits this long for others
inline constexpr unsigned kLoad = 8;             ///< commits
inline constexpr std::int64_t kQuietNs = 200'000;
inline constexpr std::size_t kMaxOpenBytes = 8'192;  ///< of the log: then it is put into datagrams

/// What leaves of what is committed: the datagrams that are full, those that are due, too, or all.
enum class Leaving : std::uint8_t { what_is_full, what_is_due, all };

class Pacing {
public:
    enum class Progress : std::uint8_t { none, look, leave };

    // ---- Writing
    /// The time of a write, by a clock that costs as much as all the rest of a word. A word that
    /// comes in a fast run has the time of one before it, as the words of a datagram have that of
    /// the first; but each has its own once the run is slower, or has been taken: then the program
    /// may have paused. `is_taken`, `now`: functions, called when the answer is needed.
    template <class IsTaken, class Clock>
    [[nodiscard]] std::int64_t time(IsTaken&& is_taken, Clock&& now) noexcept {
        if (untimed_ != 0 && !is_taken()) {
            --untimed_;
            return newest_ns_;
        }
        const std::int64_t time = now();
        untimed_ = is_loaded() && time - newest_ns_ < kFastNs ? kUntimed : 0;
        return newest_ns_ = time;
    }
    /// One lies in the log, and takes these bytes of it.
    void on_write(std::int64_t now, std::size_t bytes) noexcept {
        RMEM_CHECK_IF(false, now >= newest_ns_);
        newest_ns_ = now;
        since_ns_ = std::min(since_ns_, now);
        open_bytes_ += bytes;
    }
    /// What leaves now; nullopt: nothing. `arrivals`: counts what others have written to the users'
    /// memory.
    [[nodiscard]] std::optional<Leaving> on_commit(std::uint32_t arrivals) noexcept {
        has_committed_ = true;
        if (since_ns_ == kNever) return std::nullopt;
        if (std::exchange(arrivals_, arrivals) != arrivals) has_waited_ = true;
        note_load(std::max(newest_ns_, committed_ns_));
        coalesces_ = is_loaded();
        if (!coalesces_) return Leaving::all;
        if (newest_ns_ - since_ns_ >= kLazyNs || open_bytes_ >= kMaxOpenBytes)
            return Leaving::what_is_due;
        return std::nullopt;
    }
    /// A message was taken, of which its sender is to hear.
    void on_commit_on_wait() noexcept {
        has_waited_ = has_taken_ = true;
        coalesces_ = since_ns_ != kNever;
    }
    /// What was written has left, but for what was written since then; kNever: all has.
    void on_leave(std::int64_t since) noexcept {
        since_ns_ = since;
        open_bytes_ = 0;
        coalesces_ = since != kNever;
    }
    /// What was committed has left by then: until that the program was in its call, in which the
    /// node to which it went may have taken its processor.
    void on_left(std::int64_t now) noexcept { committed_ns_ = std::max(now, committed_ns_); }

    // ---- Waiting
    void on_wait() noexcept { has_committed_ = false; }
    /// Before a post: whether the program makes progress first.
    [[nodiscard]] bool on_post() noexcept { return !std::exchange(has_taken_, false); }
    /// What a call of the program does that makes progress: nothing, looks for datagrams, or sends
    /// what is open, too. `now`: a function, called when the answer needs it.
    template <class Clock>
    [[nodiscard]] Progress on_progress(Clock&& now) noexcept {
        if (!std::exchange(has_committed_, false)) {
            has_waited_ = is_to_look_ = true;
            return Progress::leave;
        }
        return coalesces_ && !is_time_to_look(now()) ? Progress::none : Progress::look;
    }

    /// The time of the newest write.
    [[nodiscard]] std::int64_t newest_ns() const noexcept { return newest_ns_; }
    /// Something committed is open.
    [[nodiscard]] bool coalesces() const noexcept { return coalesces_; }
    /// The same, or what was written is due. `now`: a function.
    template <class Clock>
    [[nodiscard]] bool is_to_leave(Clock&& now) const noexcept {
        RMEM_CHECK_IF(false, !coalesces_ || since_ns_ != kNever);
        return coalesces_ || (since_ns_ != kNever && now() >= due_ns());
    }
    /// When what was written leaves at the latest; kNever: nothing is open.
    [[nodiscard]] std::int64_t due_ns() const noexcept {
        return since_ns_ == kNever ? kNever : since_ns_ + kLazyNs;
    }
    [[nodiscard]] bool is_loaded() const noexcept { return load_ >= kLoad; }

private:
    static constexpr unsigned kUntimed = 7;         // words after one that was timed
    static constexpr std::int64_t kFastNs = 5'000;  // as many come within that

    void note_load(std::int64_t now) noexcept {
        if (std::exchange(has_waited_, false)) load_ /= 2;
        const std::int64_t pause = now - std::exchange(committed_ns_, now);
        if (pause > kLazyNs) load_ = pause > kQuietNs ? 0 : std::min(load_, kLoad - 2);
        load_ = std::min(load_ + 1, 2 * kLoad);
    }
    [[nodiscard]] bool is_time_to_look(std::int64_t now) noexcept {
        if (std::exchange(is_to_look_, false)) looked_ns_ = now;
        if (now - looked_ns_ < kLazyNs) return false;
        looked_ns_ = now;
        return true;
    }

    std::int64_t newest_ns_ = 0;      ///< the time of the newest write
    std::int64_t since_ns_ = kNever;  ///< of the oldest that has not left; kNever: all have
    std::size_t open_bytes_ = 0;
    unsigned untimed_ = 0;           ///< writes that need no time before the next that does
    std::int64_t committed_ns_ = 0;  ///< the last commit's time, or when that has left
    unsigned load_ = 0;              ///< commits
    std::uint32_t arrivals_ = 0;     ///< that were known at the last commit
    std::int64_t looked_ns_ = 0;     ///< under load: when it looked between two messages
    bool coalesces_ = false;         ///< something that was committed
    bool has_waited_ = false;        ///< since the last commit
    bool has_committed_ = false;     ///< since it made progress
    bool has_taken_ = false;         ///< a message, since its last post
    bool is_to_look_ = false;        ///< time counts from now
};

}  // namespace rmem::udp
