// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The first pause of a caller that polls for an answer.
///
///     pause.message();                                   // one came, or was processed
///     while (!something_came()) pause.after_empty_poll();
///
/// The two directions of a pair of ranks share a line (billboard/boards/line_board.hpp). A rank
/// that polls while the other one works on a message takes that line away from it, and the answer
/// pays another hop to get it back. So a rank that finds nothing right after a message leaves the
/// line alone for a while, once, and then polls as everybody does. What comes in that time waits no
/// longer than that.
///
/// For protocols whose way from a message to its answer is longer than a pause between two polls.
/// bbp_recv does without.
///
/// Thread safety: one thread at a time.

#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/waiting.hpp"

namespace billboard {

class AnswerPause {
public:
    /// `ns`: about as long as the other side takes from a message to its answer. If shorter, polls
    /// disturb that work; if longer, the answer waits.
    explicit AnswerPause(std::int64_t ns) noexcept : first_(pauses_of(ns)) {}

    void message() noexcept { pauses_ = first_; }
    void after_empty_poll() noexcept {
        for (; pauses_ > 1; --pauses_) rmem::cpu_relax();
        rmem::cpu_relax();
    }

    /// How many pauses of this processor are that long; 1 at least.
    RMEM_API static unsigned pauses_of(std::int64_t ns) noexcept;

private:
    unsigned first_;
    unsigned pauses_ = 1;
};

}  // namespace billboard
