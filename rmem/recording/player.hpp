// SPDX-License-Identifier: Apache-2.0
#pragma once

/// When a recording's writes are due while it is played: arithmetic only, the caller has the clock,
/// the writes and the ring.
///
///     Player player(parse_play_speed("10x"), first.time_ns, now_ns());
///     while (reader.next(write)) {
///         while (!player.take(write.time_ns, now_ns())) sleep_until(player.due_ns(write.time_ns));
///         …
///     }
///
/// Order         the file's, if the caller asks for one write at a time in that order. One whose
///               time steps back is due at once, after the one before it.
/// Thread safety one thread at a time. Units: nanoseconds. Errors: Error (invalid_argument) from
/// parsing.

#include "rmem/base/time.hpp"
#include "rmem/error.hpp"

#include <cstdint>
#include <string>

namespace rmem {

/// How fast.
struct PlaySpeed {
    enum class Kind {
        timed,    ///< as recorded, times thousandths / 1000
        unpaced,  ///< as fast as possible
        stepped   ///< a write for each step
    };
    Kind kind = Kind::timed;
    std::uint32_t thousandths = 1000;  ///< 1 to kMaxThousandths

    static constexpr std::uint32_t kMaxThousandths = 1'000'000'000;
};

/// "1x", "0.5x", "10x", at most three digits behind the point; "max"; "step".
RMEM_API PlaySpeed parse_play_speed(const std::string& text);

class RMEM_API Player {
public:
    /// At `now_ns` what was recorded at `recorded_ns` is due.
    Player(PlaySpeed speed, std::int64_t recorded_ns, std::int64_t now_ns) noexcept
        : speed_(speed), recorded_ns_(recorded_ns), started_ns_(now_ns) {}

    /// Lets `writes` more writes pass, where the speed is stepped.
    void step(std::uint64_t writes = 1) noexcept { steps_ += writes; }

    /// When the write of that time is due: before now if it may be played at once, kNever if it
    /// waits for a step.
    std::int64_t due_ns(std::int64_t recorded_ns) const noexcept;

    /// Whether the write is due. Then it counts as played.
    bool take(std::int64_t recorded_ns, std::int64_t now_ns) noexcept;

private:
    PlaySpeed speed_;
    std::int64_t recorded_ns_;
    std::int64_t started_ns_;
    std::uint64_t steps_ = 0;
};

}  // namespace rmem
