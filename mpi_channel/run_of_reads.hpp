// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whether to look for the next message as soon as one has come, so that a run of them is read by
/// one call.
///
///     if (run.found(right_away)) run.went_on(look_on());
///
/// A look that finds nothing costs as much as one that finds something, and takes the line that the
/// other rank is about to write: a rank that answers each message must not look on. What comes is
/// guessed from what came: messages that were found one after the other, each by the first look,
/// are a run. An answer that is there by the first look seems to be one, too; so a guess that was
/// wrong makes the next one wait for twice as many, and one that was right for one again.
///
/// Pure: it counts. Thread safety: one user at a time.

#include <algorithm>

namespace mpi_channel {

class RunOfReads {
public:
    /// Something was found; `right_away`: by the first look after what was found before. Whether to
    /// look on.
    [[nodiscard]] bool found(bool right_away) noexcept {
        in_a_row_ = right_away ? in_a_row_ + 1 : 0;
        return in_a_row_ >= needed_;
    }
    /// What looking on has found, if anything.
    void went_on(bool any) noexcept {
        needed_ = any ? 1 : std::min(2 * needed_, kMostNeeded);
        in_a_row_ = 0;
    }

private:
    static constexpr unsigned kMostNeeded = 64;

    unsigned in_a_row_ = 0;
    unsigned needed_ = 1;
};

}  // namespace mpi_channel
