// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What Directed Point counts: of each endpoint for dp_stat, and of the process in its block of the
/// rank slot (rmem/ring/counters.hpp), which any process can read while this one is stuck. The
/// order is that of dp_stat_t.

#include "ports/dp/dp.h"
#include "rmem/ring/counters.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ports::dp {

/// X(identifier, unit, meaning)
#define DP_COUNTERS(X)                                                                           \
    X(written, "messages", "messages sent, a multicast once")                                    \
    X(arrived, "messages", "messages put into token buffer pools")                               \
    X(dropped_full, "messages", "messages that found no room in their pool")                     \
    X(dropped_network, "messages", "messages not sent: the network stayed full")                 \
    X(dropped_writes, "messages", "messages of write(2) that cannot be sent")                    \
    X(signals, "events", "times a descriptor was made readable")                                 \
    X(served_reads, "messages", "messages that read(2) took")                                    \
    X(served_writes, "messages", "messages that write(2) gave")                                  \
    X(again, "messages", "Go-Back-N: messages sent again")                                       \
    X(timeouts, "events", "Go-Back-N: times no answer came")                                     \
    X(out_of_order, "messages", "Go-Back-N: messages that came behind a gap, or twice; dropped") \
    X(dropped_unknown, "messages", "messages for an endpoint that is not there")                 \
    X(dropped_corrupt, "messages", "what came and is no Directed Message; dropped")

RMEM_DEFINE_COUNTERS(Counter, kCounterNames, DP_COUNTERS, rmem::kCountersPerPort);

/// Those of an endpoint; has the layout of dp_stat_t.
using Counts = std::array<std::uint64_t, kCounterNames.size()>;
static_assert(sizeof(Counts) == sizeof(dp_stat_t));
#define X(id, unit, meaning)                 \
    static_assert(offsetof(dp_stat_t, id) == \
                  static_cast<std::size_t>(Counter::id) * sizeof(Counts::value_type));
DP_COUNTERS(X)
#undef X

}  // namespace ports::dp
