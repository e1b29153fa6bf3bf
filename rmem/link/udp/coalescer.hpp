// SPDX-License-Identifier: Apache-2.0
#pragma once

/// When does a write leave the node? Nagle's algorithm, driven by load: a committed write leaves at
/// once; while the program only sends, committed writes wait for later ones and share a datagram.
///
/// What waits on link udp, at most how long, and who sends it:
///
///   what waits                    how long                     who sends it
///   a committed write, no load    not at all                   commit, in the program's call
///   a committed write under load  until its datagram is full,  the write that fills it; a commit
///                                 the program waits, or        or run of the engine that finds
///                                 kLazyNs has passed           it due; the run of a program that
///                                                              waits; while the program computes
///                                                              EngineHelper, after kLazyNs, in a
///                                                              long stream up to
///                                                              EngineHelper::kMostActiveNs
///   a write committed on wait     until the next commit, the   that commit; the run of a program
///                                 program waits, or kLazyNs    that waits; a run that finds it
///                                                              due; while the program computes
///                                                              EngineHelper, after kLookNs
///   a write without a commit      until the next commit, or    that commit; a run that finds it
///                                 kLazyNs                      due
///   a client's write in its log   the same                     the client's commit or progress;
///                                                              Engine::keep, each kKeepNs
///   a delayed write (faults)      its delay                    Outbox::on_time
///   a datagram in a GSO batch     until the run or commit      Engine::send_outgoing, when the
///                                 ends that filled it          batch is full; Engine::flush
///   an acknowledgement            kAckNs, or a quarter of a    any datagram; Exchange::on_tick
///                                 window (exchange.hpp)
///
/// Load: kLoad commits without a wait, none longer than kLazyNs after the one before has left: for
/// a later one nothing could have waited. Half of it is remembered over a wait, nothing over
/// kQuietNs without a commit. A message that the program takes in between is a wait, too, and so is
/// a write of another node to the users' memory: a program that reads it by plain loads may have
/// waited for it. So two programs that answer each other never reach it, and nor does one that
/// keeps a rhythm. That another node tells of room is none: it does so for each message of a stream
/// that it takes faster than they come.
///
/// Both classes are pure: they have no clock, socket or lock, and decide by what they are told.
/// Invariants: what coalesces has a time at which it is due; no commit is older than the one
/// before.
/// Thread safety: one user at a time; Coalescer's is the engine's, ProgressPacer's the program's
/// thread.
/// Units: nanoseconds of one clock that does not go backwards, from 0.

#include "rmem/base/check.hpp"
#include "rmem/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rmem::udp {

inline constexpr std::int64_t kLazyNs = 20'000;  ///< a write waits this long for others
inline constexpr unsigned kLoad = 8;             ///< commits
inline constexpr std::int64_t kQuietNs = 200'000;

/// What leaves in a run of the engine: what is due, or all that coalesces.
enum class Leaving : bool { what_is_due, all };

/// Of the node's stream, or of a client's log.
class Coalescer {
public:
    void on_write(std::int64_t now) noexcept { due_ns_ = std::min(due_ns_, now + kLazyNs); }
    /// Whether what was written leaves now; if not, it coalesces.
    [[nodiscard]] bool on_commit(std::int64_t now) noexcept {
        RMEM_CHECK_IF(false, now >= committed_ns_);
        note_load(now);
        if (now >= due_ns_ || !is_loaded()) return true;
        coalesces_ = due_ns_ != kNever;
        return false;
    }
    /// What was committed has left by then: until that the program was in its call, in which the
    /// node to which it went may have taken its processor.
    void on_left(std::int64_t now) noexcept { committed_ns_ = std::max(now, committed_ns_); }
    /// A message was taken, of which its sender is to hear.
    void on_commit_on_wait() noexcept {
        has_waited_ = true;
        coalesces_ = due_ns_ != kNever;
    }
    /// Under load: this number was committed since the last one of which it heard, and the oldest
    /// that has not left was written then; kNever: all have.
    void on_streamed(unsigned commits, std::int64_t since_ns) noexcept {
        load_ = std::min(load_ + commits, 2 * kLoad);
        due_ns_ = since_ns == kNever ? kNever : since_ns + kLazyNs;
        coalesces_ = due_ns_ != kNever;
    }
    /// Others have written to the users' memory.
    void on_arrival() noexcept { has_waited_ = true; }
    /// Whether it leaves now.
    [[nodiscard]] bool on_wait() noexcept {
        has_waited_ = true;
        return coalesces_;
    }
    /// All that was written has left.
    void on_sent() noexcept {
        due_ns_ = kNever;
        coalesces_ = false;
    }

    /// When what was written leaves at the latest; kNever: nothing waits.
    [[nodiscard]] std::int64_t due_ns() const noexcept { return due_ns_; }
    /// Something committed has not left yet.
    [[nodiscard]] bool coalesces() const noexcept { return coalesces_; }
    [[nodiscard]] bool is_loaded() const noexcept { return load_ >= kLoad; }

private:
    void note_load(std::int64_t now) noexcept {
        if (std::exchange(has_waited_, false)) load_ /= 2;
        const std::int64_t pause = now - std::exchange(committed_ns_, now);
        if (pause > kLazyNs) load_ = pause > kQuietNs ? 0 : std::min(load_, kLoad - 2);
        load_ = std::min(load_ + 1, 2 * kLoad);
    }

    std::int64_t due_ns_ = kNever;
    std::int64_t committed_ns_ = 0;  ///< the last commit's time, or when that has left
    unsigned load_ = 0;              ///< commits
    bool coalesces_ = false;
    bool has_waited_ = false;  ///< since the last commit
};

/// Of the program that runs the engine: whether a call of it makes progress, and what leaves then.
///
/// A program that only sends does not look for datagrams between its messages, but each kLazyNs;
/// one that answers does not look before its answer, since it looked when the message came. A
/// program that makes progress twice without a commit between waits for something.
class ProgressPacer {
public:
    enum class Progress : std::uint8_t { none, what_is_due, all };

    void on_write(std::int64_t now) noexcept { written_ns_ = now; }
    /// The newest write's time, which serves as the commit's; 0: nothing was written since the last
    /// one.
    [[nodiscard]] std::int64_t on_commit() noexcept {
        has_committed_ = true;
        return std::exchange(written_ns_, 0);
    }
    /// Whether that commit has left something to coalesce.
    void on_committed(bool coalesces) noexcept { coalesces_ = coalesces; }
    void on_commit_on_wait() noexcept { has_taken_ = true; }
    void on_wait() noexcept { has_committed_ = false; }
    /// Before a post: whether the program makes progress first.
    [[nodiscard]] bool on_post() noexcept { return !std::exchange(has_taken_, false); }
    /// `now`: a function that returns the time; it is called when the decision needs it.
    template <class Clock>
    [[nodiscard]] Progress on_progress(Clock&& now) noexcept {
        if (!std::exchange(has_committed_, false)) {
            has_waited_ = true;
            return Progress::all;
        }
        return coalesces_ && !is_time_to_look(now()) ? Progress::none : Progress::what_is_due;
    }

private:
    [[nodiscard]] bool is_time_to_look(std::int64_t now) noexcept {
        if (std::exchange(has_waited_, false)) looked_ns_ = now;
        if (now - looked_ns_ < kLazyNs) return false;
        looked_ns_ = now;
        return true;
    }

    std::int64_t written_ns_ = 0;  ///< the newest write's time, not committed yet; 0: none
    std::int64_t looked_ns_ = 0;   ///< under load: when it made progress between two messages
    bool has_committed_ = false;   ///< since it made progress
    bool has_taken_ = false;       ///< a message, since its last post
    bool has_waited_ = false;      ///< since it made progress between two messages
    bool coalesces_ = false;       ///< what it committed last
};

}  // namespace rmem::udp
