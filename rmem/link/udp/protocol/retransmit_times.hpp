// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The timers of retransmission, all of them derived from the measured round trip. The one home of
/// their limits.
///
/// Units: nanoseconds.

#include <algorithm>
#include <cstdint>

namespace rmem::udp {

inline constexpr std::int64_t kFirstRoundTripNs = 1'000'000;  ///< until one is measured
inline constexpr std::int64_t kLeastRetransmitNs =
    50'000;  ///< below, a host that looks away is taken for a loss
inline constexpr std::int64_t kMaxRetryNs = 20'000'000;  ///< to which intervals double
/// Where the carrier retransmits by itself: only what a broken connection took along is missed.
inline constexpr std::int64_t kReliableProbeNs = kMaxRetryNs;
/// And a long message of it may overtake none, but come later than a short one sent after it.
inline constexpr std::int64_t kReliableNakNs = 2'000'000;

struct RetransmitTimes {
    std::int64_t round_trip_ns = kFirstRoundTripNs;  ///< smoothed
    std::int64_t deviation_ns = kFirstRoundTripNs / 2;
    std::int64_t least_probe_ns = kLeastRetransmitNs;
    std::int64_t least_nak_ns = 0;  ///< from a gap to its NAK

    /// Between two NAKs for the same batch: the answer takes a round trip.
    constexpr std::int64_t nak_retry_ns() const noexcept {
        return std::clamp(2 * round_trip_ns, kLeastRetransmitNs, kMaxRetryNs);
    }
    /// From sending the newest batch to sending it again when nobody has acknowledged it.
    constexpr std::int64_t probe_ns() const noexcept {
        return std::clamp(round_trip_ns + 4 * deviation_ns, least_probe_ns, kMaxRetryNs);
    }
    /// Another NAK for the same within this is answered by what is on its way already.
    constexpr std::int64_t answer_once_ns() const noexcept { return round_trip_ns / 2; }
    /// How long the node that comes `steps` behind the origin in ring order leaves the NAK to
    /// others.
    constexpr std::int64_t nak_backoff_ns(unsigned steps) const noexcept {
        return least_nak_ns +
               std::min<std::int64_t>(steps, 4) * (std::min(round_trip_ns, kMaxRetryNs) / 4);
    }
};

/// An interval that has doubled `times` times.
constexpr std::int64_t doubled(std::int64_t interval_ns, unsigned times) noexcept {
    for (; times > 0 && interval_ns < kMaxRetryNs; --times) interval_ns *= 2;
    return std::min(interval_ns, kMaxRetryNs);
}

/// A probe is answered by each receiver, and all hear each answer: of more than that number each
/// makes the time between two probes longer.
inline constexpr unsigned kProbedAtOnce = 8;

}  // namespace rmem::udp
