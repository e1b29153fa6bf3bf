// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Plays a recording into a live ring, as one of its nodes.
///
/// Memory        first the ring's memory is made as it was where the replay begins: its state when
///               the recording began, and the writes before `from_ns`; other words are zero. Only
///               words that differ are written. With `node` this is left out: the other nodes'
///               words are not ours.
/// Range         writes of the user's memory; others (a protocol's regions, a smaller ring) are
///               counted and left out.
/// Interrupts    a write that carried the interrupt mark carries it again.
/// Invariants, executed: the range's end is not before its beginning; what is written lies in the
///               ring's user memory, and nothing is noted once the replay has begun.
/// Thread safety one thread. Errors: `rmem::Error` from joining; timed_out when the ring takes no
/// writes.

#include "rmem/node.hpp"
#include "rmem/recording/player.hpp"
#include "rmem/recording/recording_reader.hpp"
#include "tools/stop_signals.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tools {

/// The wanted part of a recording, by times of its host's CLOCK_MONOTONIC.
struct Selection {
    std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();
    std::int64_t until_ns = rmem::kNever;
    std::optional<unsigned> node;

    bool takes(const rmem::RecordedWrite& write) const noexcept {
        if (write.time_ns < from_ns || write.time_ns > until_ns) return false;
        if (!node) return true;
        return *node == write.node && (write.flags & rmem::RecordedWrite::kAtStart) == 0;
    }
};

struct Replayed {
    std::uint64_t writes = 0, bytes = 0;
    std::uint64_t outside =
        0;                     ///< writes, or parts of them, that are not in the ring's user memory
    std::uint64_t missed = 0;  ///< places where the recorder missed some
    std::int64_t latest_ns = 0;  ///< the most that one was behind its time
};

class RingReplay {
public:
    /// Gives the steps that the user wants after that write, 0 to end.
    using Steps = std::function<std::uint64_t(const rmem::RecordedWrite& next)>;

    RingReplay(rmem::Node& node, rmem::RecordingReader& reader, const Selection& selection,
               const StopSignals& stop);

    /// Plays to the end, or until the user wants no more steps or a signal comes. `steps` is asked
    /// before a write for which none are left, where the speed is stepped.
    void run(rmem::PlaySpeed speed, const Steps& steps);
    const Replayed& result() const noexcept { return result_; }

private:
    bool is_before(const rmem::RecordedWrite& write) const noexcept;
    bool is_belated(const rmem::RecordedWrite& write, bool has_begun) const noexcept;
    void note(const rmem::RecordedWrite& write);
    void note_lateness(const rmem::Player& player, const rmem::RecordedWrite& write) noexcept;
    void write_image();
    bool wait_for(rmem::Player& player, const rmem::RecordedWrite& write, const Steps& steps);
    void sleep_until(std::int64_t due_ns);
    void play(rmem::RecordedWrite write);

    rmem::Node& node_;
    rmem::RecordingReader& reader_;
    const Selection selection_;
    const StopSignals& stop_;
    std::vector<std::byte>
        image_;  ///< the user's memory where the replay begins, until it is written
    std::int64_t newest_ns_ =
        std::numeric_limits<std::int64_t>::min();  ///< time of the played writes
    Replayed result_;
};

}  // namespace tools
