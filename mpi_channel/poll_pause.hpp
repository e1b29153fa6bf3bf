// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How long a rank that has sent leaves the board alone before it polls for the answer.
///
///     pause.sent();
///     for (unsigned n = pause.before_poll(); n > 0; --n) rmem::cpu_relax();
///     something_came() ? pause.found() : pause.found_nothing();
///
/// A poll takes the lines that the other rank is about to write from its processor, which then pays
/// a hop more to get them back: 8 bytes through MPI take 430 ns with a poll at once and 270 without
/// where a hop takes 220. How long the other one needs depends on the machine and its program, so
/// it is learned. A first poll that finds nothing came too early, and the pause becomes longer by
/// half; one that finds something may have come too late, and it becomes shorter by a little: to be
/// late costs as long as one is late, to be early a hop. A rank that sends and waits for nothing
/// soon pauses no more.
///
/// Pure: it counts, and its owner pauses; never longer than that allows, so what comes within a
/// pause waits no longer than that.
/// Thread safety: one user at a time. Units: pauses of the processor (rmem::cpu_relax).

#include <algorithm>
#include <utility>

namespace mpi_channel {

class PollPause {
public:
    explicit PollPause(unsigned most) noexcept : most_(most * kParts), length_(most_) {}

    void sent() noexcept {
        if (waits_) shorten(kUnasked);  // and nothing was found since the last one
        is_due_ = waits_ = true;
        is_first_ = true;
    }
    /// How long to pause: once after what was sent.
    [[nodiscard]] unsigned before_poll() noexcept {
        return std::exchange(is_due_, false) ? length_ / kParts : 0;
    }
    void found_nothing() noexcept {
        if (!waits_ || !std::exchange(is_first_, false)) return;
        length_ = std::min(length_ + length_ / kEarly + kParts, most_);
    }
    void found() noexcept {
        if (!std::exchange(waits_, false)) return;
        if (is_first_) shorten(kLate);
    }

private:
    static constexpr unsigned kParts = 64;  ///< of a pause, so that it changes by less than one
    static constexpr unsigned kEarly = 2, kLate = 32, kUnasked = 8;  ///< it changes by that part

    void shorten(unsigned part) noexcept { length_ -= length_ / part; }

    unsigned most_, length_;  ///< in parts of a pause
    bool is_due_ = false;
    bool waits_ = false;     ///< something was sent, and nothing found since
    bool is_first_ = false;  ///< no poll since what was sent
};

}  // namespace mpi_channel
