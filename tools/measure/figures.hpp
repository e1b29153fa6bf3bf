// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The measured figures, each in the same run and on the same segment as the machine's own limit.
///
/// Method: two kinds of samples. *Rounds*: the floor and ours in turn, each a batch of operations
/// between two clock readings, so that a change of the machine's speed meets both; ratios and
/// differences are taken round by round and their median is quoted. *Singles*: each operation
/// between two clock readings (which cost some 25 ns each), for the percentiles of the tail.
/// Units: nanoseconds one way, unless a name says otherwise.

#include "tools/measure/rank_group.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tools {

struct Plan {
    std::size_t samples = 100'000;  ///< singles
    std::size_t rounds = 200;       ///< of floor and ours in turn
    std::size_t batch = 500;        ///< operations in each half of a round
    std::size_t bytes = 8;
    /// Pingpong: each side first works for a random time of up to this number of ns, in the floor
    /// and in ours alike; half of it is subtracted. Two loops of fixed length fall into step with
    /// the pause instruction, and then a nanosecond more or less of work shows as a whole pause or
    /// as none.
    double think_ns = 0;
};

/// Series: floor, ours (rounds), single, floor_single.
void measure_pingpong(const GroupOptions& options, const Plan& plan, Results& results);
/// 8-byte messages one after the other: floor (a hop), ours (per message).
void measure_rate(const GroupOptions& options, const Plan& plan, Results& results);
/// Large messages: memcpy (one copy), pipelined (two copies through the segment on two processors),
/// stream (send and receive), view (read in place), all ns per message.
void measure_bandwidth(const GroupOptions& options, const Plan& plan, Results& results);
/// Multicast at the sender to 1, 2, … receivers: floor, send_<n>; and one_way to all (ours).
void measure_mcast(const GroupOptions& options, const Plan& plan, Results& results);
/// floor, ours (rounds), single.
void measure_barrier(const GroupOptions& options, const Plan& plan, Results& results);
/// Receive from BBP_ANY while a random rank sends: floor, known (source named), ours; and empty: a
/// bbp_msgavail that finds nothing.
void measure_any(const GroupOptions& options, const Plan& plan, Results& results);
/// The floor alone: hop, memcpy.
void measure_floor(const GroupOptions& options, const Plan& plan, Results& results);

}  // namespace tools
