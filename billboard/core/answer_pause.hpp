// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How long a rank that has sent leaves the board alone before it polls for the answer: a hop of a
/// cache line, as it measures that.
///
///     pause.sent();
///     const std::int64_t began = pause.before_poll();
///     const int from = poll();             // BBP_EAGAIN: nothing is there
///     pause.after_poll(from, began);
///
/// The two directions of a pair of ranks share lines (billboard/boards/line_board.hpp). A poll
/// takes those that the other rank is about to write from its processor, which then pays a hop more
/// to get them back: 8 bytes through MPI take 430 ns with a poll at once and 270 without where a
/// hop takes 220. What was sent takes a hop to get there, so nothing comes before that; where a hop
/// is short, so is the pause. A poll that finds something fetches a line, so its time is taken for
/// a hop, now and then. A rank that has sent more than one message waits for no answer, and does
/// not pause.
///
/// For protocols whose way from a message to its answer is longer than a pause between two polls;
/// bbp_recv does without.
/// Thread safety: one thread at a time.

#include "billboard/bbp.h"
#include "rmem/base/clock.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <algorithm>
#include <cstdint>

namespace billboard {

class AnswerPause {
public:
    /// Guesses: messages come whatever they are.
    struct Tuning {
        std::uint32_t most_ns = 200;  ///< what comes within a pause waits for its end
        std::uint32_t every = 64;     ///< answers between two that are measured
        std::uint32_t growth = 8;     ///< of what is longer than before, that part of it, of 64
    };

    AnswerPause() noexcept : AnswerPause(Tuning{}) {}
    explicit AnswerPause(const Tuning& tuning) noexcept : tuning_(tuning) {}

    void sent() noexcept { ++sent_; }
    /// Pauses, if that is due. For after_poll(): when the poll began, if it is measured.
    [[nodiscard, gnu::always_inline]] std::int64_t before_poll() const noexcept {
        for (unsigned n = due(); n > 0; --n) rmem::cpu_relax();
        return sent_ != 0 && until_measured_ == 0 ? rmem::now_ns() : kUnmeasured;
    }
    /// `from`: what the poll has found.
    [[gnu::always_inline]] void after_poll(int from, std::int64_t began) noexcept {
        if (sent_ == 0) return;
        if (from == BBP_EAGAIN) {
            if (sent_ == 1) ++sent_;
            return;
        }
        sent_ = 0;
        if (until_measured_ != 0) --until_measured_;
        if (began != kUnmeasured) [[unlikely]]
            learn(rmem::now_ns() - began);
    }

    /// In pauses of the processor (rmem::cpu_relax): once, before the first poll after what was
    /// sent.
    [[nodiscard]] unsigned due() const noexcept { return sent_ == 1 ? pauses_ : 0; }
    /// That long was a hop, if nothing came in between: what is longer than before is believed by
    /// and by.
    RMEM_API void learn(std::int64_t ns) noexcept;

private:
    static constexpr std::int64_t kUnmeasured = -1;

    Tuning tuning_;
    std::uint32_t hop_ns_ = 0;
    unsigned pauses_ = 0;  ///< as long as a hop
    unsigned sent_ = 0;    ///< since something was found; and a first poll that found nothing
    std::uint32_t until_measured_ = 0;
};

}  // namespace billboard
