// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How far another node is, and what its clock shows: one object per other node, fed with its
/// echoes.
///
/// Terms
///   echo          says: "your datagram of that send time was the newest I had; I held it that
///                 long"
///   round trip    arrival of the echo − own send time − time held
///   clock error   how much the stated offset may be wrong, at most, if the two clocks drift apart
///                 by no more than kDriftPpm and the other node says the truth
/// When the other node sent its echo, by our clock, lies between (own send time + time held) and
/// (arrival of the echo): the middle is taken, and half a round trip is the error, whatever share
/// of it each way had. The time held is by the other's clock, so its drift counts too: a node
/// answers soon, and names what it received last. Of the last kSamples echoes the one counts that
/// has the least error by now: an old one has aged by the drift since.
///
/// Two echoes that exclude each other show that a clock was set, or stood still with its host: then
/// what came before is forgotten, and `jumps` counts it.
///
/// Smoothing and deviation are RFC 6298's, in integers with three and two more bits than they show.
///
/// Thread safety: one thread at a time. Units: nanoseconds; times are of any clock that does not go
/// backwards, 0 to kLatestNs. Errors: none; nonsense is refused and changes nothing.

#include "rmem/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmem {

class RMEM_API RoundTrip {
public:
    static constexpr std::size_t kSamples = 64;
    static constexpr std::int64_t kDriftPpm = 100;
    /// Later times (146 years) are nonsense; so no difference of two times overflows.
    static constexpr std::int64_t kLatestNs = (std::int64_t{1} << 62) - 1;
    /// A longer round trip (18 minutes) is nonsense.
    static constexpr std::int64_t kLongestNs = std::int64_t{1} << 40;

    struct Echo {
        std::int64_t sent_ns = 0;        ///< when we sent what it answers, own clock
        std::int64_t held_ns = 0;        ///< how long the other held it, its clock
        std::int64_t other_sent_ns = 0;  ///< when the other sent the echo, its clock
        std::int64_t arrived_ns = 0;     ///< when the echo came, own clock
    };

    /// `value_ns` ± `error_ns`.
    struct Estimate {
        std::int64_t value_ns = 0;
        std::int64_t error_ns = 0;
    };

    /// False for an echo that cannot be true: times outside the range, one that answers what we
    /// have not sent yet, held for longer than it was away.
    bool add(const Echo& echo) noexcept;

    /// No echo yet: all times are 0, and there are no estimates.
    bool empty() const noexcept { return filled_ == 0; }
    std::int64_t smoothed_ns() const noexcept { return smoothed_8_ / 8; }
    std::int64_t deviation_ns() const noexcept { return deviation_4_ / 4; }
    /// Echoes that showed a jump of a clock.
    std::uint64_t jumps() const noexcept { return jumps_; }

    /// The other's clock minus ours.
    std::optional<Estimate> offset(std::int64_t now) const noexcept;
    /// A time of the other's clock by our clock; nothing for a time outside the range.
    std::optional<Estimate> own_time(std::int64_t other_ns, std::int64_t now) const noexcept;

private:
    struct Sample {
        std::int64_t offset_ns = 0;
        std::int64_t error_ns = 0;  ///< when it was taken
        std::int64_t taken_ns = 0;
    };

    [[nodiscard]] static bool is_possible(const Echo& echo) noexcept;
    static Sample sample_of(const Echo& echo, std::int64_t round_trip) noexcept;
    static std::int64_t error_at(const Sample& sample, std::int64_t now) noexcept;
    void smooth(std::int64_t round_trip) noexcept;
    void keep(const Sample& sample) noexcept;
    bool agrees_with_best(const Sample& sample) const noexcept;
    std::size_t find_best(std::int64_t now) const noexcept;

    std::array<Sample, kSamples> samples_{};
    std::size_t filled_ = 0;  ///< samples that count
    std::size_t next_ = 0;    ///< where the next one goes
    std::size_t best_ = 0;    ///< the one with the least error, the same at any time
    std::int64_t smoothed_8_ = 0;
    std::int64_t deviation_4_ = 0;
    std::uint64_t jumps_ = 0;
};

}  // namespace rmem
