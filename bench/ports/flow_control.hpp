// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Return-to-sender against windows, which the paper of Fast Messages leaves open (section 5).
///
/// The same frames, senders 1 to n and one receiver, under three ways to divide the receiver's
///   queue:
///   returned      of kPlaces for all; what finds none goes back
///   same_memory   of kPlaces, divided: each sender has a window of kPlaces / n
///   own_windows   a window of kPlaces for each sender, n times the memory
/// All senders at once (`all`), or one of the n (`one`). Method: in turn, round by round, on one
/// ring, each with fresh queues. Series: <way>_<who>, ns for each message until the last handler
/// has run; latency_<way>_<who>, ns from the call to the handler, of every 16th message;
/// rejected_<way>_<who>, frames returned for each message.

#include "bench/ports/table.hpp"
#include "tools/measure/rank_group.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

inline constexpr unsigned kPlaces = 64;

struct FlowPlan {
    std::size_t rounds = 51;
    int messages = 2000;   ///< of each sender in a round
    bool is_slow = false;  ///< the receiver works 1 us for each message
};

struct FlowWay {
    const char* name;
    unsigned places;  ///< of the receive queue
    unsigned to_one;  ///< frames on their way from one sender
};
std::vector<FlowWay> flow_ways(unsigned senders);
/// Bytes of the receiver's queue.
std::size_t flow_bytes(const FlowWay& way);

void measure_flow(const GroupOptions& options, const FlowPlan& plan, Results& results);

/// With 1, 2, 4, … senders. Ratios are to return-to-sender, round by round.
Table compare_flow(GroupOptions options, unsigned most_senders, const FlowPlan& plan);

}  // namespace bench
