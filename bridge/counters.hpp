// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a bridge counts at each of its ends, in the last block of its rank's slot in that ring
/// (rmem/ring/counters.hpp), where any process can read it while the bridge is stuck.

#include "rmem/ring/counters.hpp"

#include <cstddef>

namespace bridge {

/// X(identifier, unit, meaning)
#define BRIDGE_COUNTERS(X)                                                                 \
    X(forwarded_writes, "writes", "writes sent to the other end, copies among them")       \
    X(forwarded_bytes, "bytes", "of what was forwarded")                                   \
    X(forwarded_frames, "frames", "frames they left in")                                   \
    X(brought_writes, "writes", "writes of the other end made in this ring")               \
    X(brought_bytes, "bytes", "of what was brought")                                       \
    X(brought_frames, "frames", "frames they came in")                                     \
    X(fresh_copies, "copies", "copies of a region after a loss, or of what was conflated") \
    X(conflated, "writes", "writes of which only the latest values were sent")             \
    X(missed, "events", "times that writes were overwritten before they were read")        \
    X(lost_lines, "events", "times that the line to the other end was lost")               \
    X(reconnects, "events", "times that it came back")                                     \
    X(refused_loops, "events", "regions refused because their words would go in a circle") \
    X(no_room, "events", "times that this ring had no room for a frame")                   \
    X(lag_now_ns, "ns", "how long the oldest write that the other end lacks has waited")   \
    X(lag_max_ns, "ns", "the longest that one has")

RMEM_DEFINE_COUNTERS(Counter, kCounterNames, BRIDGE_COUNTERS, rmem::kCountersPerPort);

/// Which block of a rank's slot is a bridge's.
inline constexpr std::size_t kCounterBlock = rmem::kPortBlocks - 1;

}  // namespace bridge
