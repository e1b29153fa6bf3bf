// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where the two fitted constants of the host profile "pentium-ii" come from, and the one of its
/// MPI.
///
/// Of the paper's hosts the bus is known; the costs of a load across it and of a call's software
/// are not. Two measurements speak of them, the one-way latencies of 0 and 4 bytes: one word more
/// through everything tells the load, the rest the call. All else (the store, the ring) is given
/// and stays what it is.
///
/// They tell the load well, and of the call only the most that it can be: a rank that answers has
/// just acknowledged, its card sends the next word no earlier than one pitch later, and software up
/// to that time costs nothing. So the fit takes the longest call for which both latencies come to a
/// tenth of the last digit that the paper prints; every shorter one fits as well, with a load a few
/// ns longer.
///
/// Units: nanoseconds, whole; picoseconds where means are compared. The search is over integers and
/// deterministic. Errors: simulator/paper/worlds.hpp.

#include "simulator/paper/mpi.hpp"
#include "simulator/paper/worlds.hpp"

#include <cstdint>

namespace simulator {

inline constexpr std::int64_t kPaperZeroBytesPs = 6'500'000;
inline constexpr std::int64_t kPaperFourBytesPs = 7'800'000;
inline constexpr std::int64_t kFitTolerancePs = 10'000;

struct HostFit {
    std::int64_t load_ns = 0, call_ns = 0;              ///< the value that fits
    std::int64_t zero_bytes_ps = 0, four_bytes_ps = 0;  ///< the latencies that it gives

    bool fits() const noexcept;
};

/// The longest call that fits, and its load. The testbed's host keeps its store; its load and call
/// do not matter. The result does not fit if no value does.
HostFit fit_host(const Testbed& testbed);

/// The load with which that call fits best: one latency is then as much too long as the other too
/// short.
HostFit fit_load(const Testbed& testbed, std::int64_t call_ns);

/// The software of an MPI message, by the paper's 44 µs for an empty one; all other measurements of
/// MPI follow from it. To a nanosecond, the best: one less would miss by more.
inline constexpr std::int64_t kPaperMpiZeroBytesPs = 44'000'000;
MpiHost fit_mpi(const Testbed& testbed);

}  // namespace simulator
