// SPDX-License-Identifier: Apache-2.0
#include "simulator/sizing/model.hpp"

#include "rmem/link/udp/protocol/exchange.hpp"
#include "rmem/link/udp/protocol/format.hpp"
#include "rmem/link/udp/protocol/retransmit_times.hpp"
#include "simulator/sizing/core_ring.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace simulator::sizing {

namespace {

using rmem::udp::kEnvelopeBytes;

constexpr double kMillion = 1e6;
constexpr unsigned kMostRounds = 16;  // of sending again that are looked at
/// Of a datagram with one acknowledgement, and an echo or two beside it.
constexpr std::size_t kAckBytes = kEnvelopeBytes + 40;
/// Of a datagram of the write's: section head, sequence, time and place are before the words.
constexpr std::size_t kBatchHeadBytes = kEnvelopeBytes + 28;
/// Of a message over a fabric: the place, and what tells its order.
constexpr std::size_t kMessageHeadBytes = 32;

struct Hop {
    Carrier carrier;
    std::size_t bytes;  ///< of the datagram or message
    const Costs& costs;

    Hop(Carrier by, std::size_t write_bytes, const Costs& at)
        : carrier(by),
          bytes(write_bytes + (by == Carrier::fabric ? kMessageHeadBytes : kBatchHeadBytes)),
          costs(at) {}

    /// Datagrams that the sender hands over.
    unsigned sends(unsigned receivers) const noexcept {
        return carrier == Carrier::multicast ? std::min(receivers, 1U) : receivers;
    }
    std::int64_t send_ns(unsigned receivers, std::size_t of_bytes) const noexcept {
        const unsigned count = sends(receivers);
        return count == 0
                   ? 0
                   : costs.call_ns + costs.bytes_ns(of_bytes) + (count - 1) * costs.further_ns;
    }
    std::int64_t receive_ns(std::size_t of_bytes) const noexcept {
        return costs.receive_ns + costs.bytes_ns(of_bytes);
    }
    /// From the call until the write is in the bank of the `i`th receiver.
    std::int64_t reaches_ns(unsigned i) const noexcept {
        const std::int64_t line_ns = costs.line_ns(bytes);
        std::int64_t leaves_ns = costs.call_ns + costs.bytes_ns(bytes) + line_ns;
        // The slower of the host and its line gives the pace.
        if (carrier != Carrier::multicast) leaves_ns += i * std::max(costs.further_ns, line_ns);
        return leaves_ns + costs.switch_ns + line_ns + receive_ns(bytes);
    }
    bool is_lossy() const noexcept { return carrier != Carrier::fabric; }
};

/// The mean number of rounds of sending again, if a receiver misses one with this chance.
double mean_rounds(double missed, double receivers) {
    double rounds = 0, chance = 1;
    for (unsigned k = 1; k <= kMostRounds; ++k) {
        chance *= missed;
        rounds += 1 - std::pow(1 - chance, receivers);
    }
    return rounds;
}

/// The time by which sending again is over, as far beyond none at all; in the mean.
double mean_rounds_ns(double missed, double receivers, double first_ns) {
    double ns = 0, chance = 1, interval_ns = first_ns;
    for (unsigned k = 1; k <= kMostRounds; ++k) {
        chance *= missed;
        ns += interval_ns * (1 - std::pow(1 - chance, receivers));
        interval_ns *= 2;
    }
    return ns;
}

/// One ring that a write goes through, and what it costs there.
struct RingCost {
    std::int64_t node_ns;  ///< of each of its nodes, the sender and the receivers alike
    double datagrams, resent;
};

RingCost ring_cost(const Hop& hop, unsigned nodes, double lost) {
    const unsigned receivers = nodes - 1;
    if (!hop.is_lossy()) {
        const std::int64_t most_ns =
            std::max(hop.send_ns(receivers, hop.bytes), hop.receive_ns(hop.bytes));
        return {most_ns, static_cast<double>(receivers), 0};
    }
    // A datagram or its acknowledgement may be what is lost.
    const double rounds = mean_rounds(1 - (1 - lost) * (1 - lost), receivers);
    // All hear all of it: of each receiver one acknowledgement.
    const double per_round = hop.sends(receivers) * static_cast<double>(nodes);
    const std::int64_t round_ns =
        hop.send_ns(receivers, hop.bytes) + receivers * hop.receive_ns(kAckBytes);
    return {round_ns + static_cast<std::int64_t>(rounds * static_cast<double>(round_ns)),
            (1 + rounds) * per_round, rounds * per_round};
}

/// A write's path to some receivers.
struct Path {
    std::int64_t ns = 0;  ///< if nothing is lost
    unsigned hops = 1;
};

std::vector<Path> paths_of(const Plan& plan, const Hop& hop) {
    std::vector<Path> paths;
    const auto ring = [&](unsigned nodes, const Path& to_sender) {
        for (unsigned i = 0; i + 1 < nodes; ++i) {
            paths.push_back({to_sender.ns + hop.reaches_ns(i), to_sender.hops + 1});
        }
    };
    const Path origin{0, 0};
    if (plan.racks == Racks::none || plan.rack_count() == 1) {
        ring(plan.nodes, origin);
        return paths;
    }
    ring(plan.rack_nodes, origin);
    const Path forwarder = paths.front();
    Path before = forwarder;
    for (unsigned rack = 1; rack < plan.rack_count(); ++rack) {
        Path there{before.ns + hop.reaches_ns(0), before.hops + 1};
        if (plan.racks == Racks::tree)
            there = {forwarder.ns + hop.reaches_ns(rack - 1), forwarder.hops + 1};
        paths.push_back(there);
        ring(std::min(plan.rack_nodes, plan.nodes - rack * plan.rack_nodes), there);
        before = there;
    }
    return paths;
}

/// The time within which that part of all arrivals is there. Of a path each hop misses a datagram
/// with that chance, and again; each time costs a probe's.
std::int64_t quantile_ns(const std::vector<Path>& paths, double part, double lost,
                         std::int64_t again_ns) {
    struct Arrival {
        std::int64_t ns;
        double weight;
    };
    std::vector<Arrival> arrivals;
    for (const Path& path : paths) {
        double weight = std::pow(1 - lost, path.hops);
        std::int64_t late_ns = 0;
        for (unsigned k = 0; k <= 3; ++k) {
            arrivals.push_back({path.ns + late_ns, weight});
            if (lost <= 0) break;
            weight *= lost * (path.hops + k) / (k + 1);
            // One hop that misses it twice waits twice as long the second time.
            late_ns = path.hops == 1 ? 2 * late_ns + again_ns : late_ns + again_ns;
        }
    }
    std::sort(arrivals.begin(), arrivals.end(),
              [](const Arrival& a, const Arrival& b) { return a.ns < b.ns; });
    double sum = 0;
    for (const Arrival& arrival : arrivals) {
        sum += arrival.weight;
        if (sum >= part * static_cast<double>(paths.size())) return arrival.ns;
    }
    return arrivals.back().ns;
}

}  // namespace

std::int64_t probe_ns(unsigned nodes, Carrier carrier, const Load& load, const Costs& costs) {
    const Hop hop(carrier, load.write_bytes, costs);
    const unsigned receivers = std::max(nodes, 2U) - 1;
    // The slowest answer waits behind all others in the sender's socket.
    const std::int64_t round_trip_ns =
        2 * hop.reaches_ns(receivers - 1) + (receivers - 1) * hop.receive_ns(kAckBytes);
    const std::int64_t crowds = std::max(receivers / rmem::udp::kProbedAtOnce, 1U);
    return rmem::udp::RetransmitTimes{round_trip_ns, 0}.probe_ns() * crowds;
}

Figures figures_of(const Plan& plan, const Load& load, const Costs& costs) {
    const Hop hop(plan.carrier, load.write_bytes, costs);
    const double lost = hop.is_lossy() ? load.lost_ppm / kMillion : 0;
    const unsigned racks = plan.rack_count();
    const unsigned ring_nodes = racks == 1 ? plan.nodes : plan.rack_nodes;
    const std::int64_t again_ns = probe_ns(ring_nodes, plan.carrier, load, costs);

    const std::vector<Path> paths = paths_of(plan, hop);
    Figures figures;
    figures.p50_ns = quantile_ns(paths, 0.50, lost, again_ns);
    figures.p99_ns = quantile_ns(paths, 0.99, lost, again_ns);
    const auto last = std::max_element(paths.begin(), paths.end(),
                                       [](const Path& a, const Path& b) { return a.ns < b.ns; });
    figures.last_ns = last->ns + static_cast<std::int64_t>(mean_rounds_ns(
                                     lost, plan.nodes - 1, static_cast<double>(again_ns)));
    figures.sends = hop.sends(ring_nodes - 1);
    figures.sender_ns = hop.send_ns(ring_nodes - 1, hop.bytes);

    const RingCost rack = ring_cost(hop, ring_nodes, lost);
    figures.node_ns = rack.node_ns;
    figures.datagrams = rack.datagrams;
    figures.resent = rack.resent;
    if (racks == 1) return figures;
    const bool is_tree = plan.racks == Racks::tree;
    const RingCost between = ring_cost(hop, is_tree ? racks : 2, lost);
    const double links = is_tree ? 1 : racks - 1;
    // A forwarder in the middle of a chain is in two rings of two.
    figures.node_ns += (is_tree || racks == 2 ? 1 : 2) * between.node_ns;
    figures.datagrams = racks * rack.datagrams + links * between.datagrams;
    figures.resent = racks * rack.resent + links * between.resent;
    return figures;
}

// ---- Memory

Memory::Memory(std::size_t write_bytes) {
    const auto bytes_with = [&](unsigned nodes) {
        RingShape shape;
        shape.nodes = nodes;
        shape.write_bytes = write_bytes;
        shape.window = rmem::udp::kMostWindow;
        CoreRing ring(shape, udp_costs);
        ring.join();
        ring.write_each();
        return ring.figures().memory_bytes;
    };
    constexpr unsigned kFew = 4, kMore = 8;
    const std::size_t with_few = bytes_with(kFew), with_more = bytes_with(kMore);
    each_ = (with_more - with_few) / (kMore - kFew);
    alone_ = with_few - kFew * each_;
}

std::size_t Memory::bytes(const Plan& plan) const noexcept {
    const unsigned racks = plan.rack_count();
    if (racks == 1) return bytes(plan.nodes);
    const std::size_t in_rack = bytes(plan.rack_nodes);
    if (plan.racks == Racks::tree) return in_rack + bytes(racks);
    return in_rack + std::min(racks - 1, 2U) * bytes(2);
}

}  // namespace simulator::sizing
