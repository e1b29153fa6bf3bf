// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The figures of the ports, each beside what it is compared with, by the method of
/// bench/ports/rounds.hpp. Units: ns, bytes.

#include "bench/ports/table.hpp"
#include "tools/measure/rank_group.hpp"

#include <cstddef>
#include <vector>

namespace bench {

struct Effort {
    unsigned rounds = 15;
    unsigned batches = 40;  ///< of each kind, in each subject's turn of a round
    unsigned batch = 500;   ///< messages between two readings of the clock
};

/// One way of a small message of each system over one of the billboard's, in a bare ping-pong; and
/// with work of `think_ns` on average between receiving and answering, which is subtracted.
Table measure_latency(const GroupOptions& options, const Effort& effort, double think_ns);
/// From small message to small message of a stream.
Table measure_gap(const GroupOptions& options, const Effort& effort);

struct BandwidthPlan {
    unsigned rounds = 7;
    unsigned messages = 65'535;  ///< of each size, as in the paper of FM
    unsigned trips = 200;        ///< of the ping-pong of each size
};
/// r_inf, n_1/2 and t0 as in the paper of FM; and the curves that they are taken from.
std::vector<Table> measure_bandwidth(const GroupOptions& options, const BandwidthPlan& plan);

struct SharePlan {
    unsigned rounds = 15;
    double seconds = 0.4;  ///< of each subject in a round
    std::vector<unsigned> sizes = {1400};
};
/// Bandwidth over udp as a share of a stream of bare datagrams of the same size.
Table measure_share(GroupOptions options, const SharePlan& plan);

/// GAMMA's barrier beside the billboard's and the least there can be.
Table measure_barriers(const GroupOptions& options, const Effort& effort);
/// Messages of FM to a thousand handlers in turn, over messages to one.
Table measure_handlers(const GroupOptions& options, const Effort& effort);
/// Directed Point both ways at once over one way.
Table measure_both_ways(const GroupOptions& options, const Effort& effort);

}  // namespace bench
