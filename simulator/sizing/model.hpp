// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a write costs in a ring of any number of nodes, computed: the same costs as the simulated
/// ring of real cores has (simulator/sizing/core_ring.hpp), without a core.
///
/// Terms
///   carrier   how a node reaches the others of its ring: one multicast datagram, a datagram to
///             each by the host (fan-out), or a message to each over a reliable fabric
///   rack      nodes that form a ring of their own, one of which, the forwarder, is in a second
///             ring of all forwarders (tree), or in rings of two with the forwarders before and
///             behind it (chain). What comes from there it sends on in its rack, and there what
///             its rack writes
///   path      of a write to one receiver: the rings that it goes through
///
/// The write is alone: nothing else is under way when it is stored, as in a rig whose nodes write
/// now and then. Each receiver of multicast or fan-out acknowledges it with a datagram to all. What
/// is lost is sent again by the origin when not all have acknowledged after its probe's time, which
/// doubles; so do the probes go out in rounds, each of which each receiver answers.
///
/// Thread safety: pure functions.
/// Units: nanoseconds; losses in parts of a million.

#include "simulator/sizing/costs.hpp"

#include <cstddef>
#include <cstdint>

namespace simulator::sizing {

enum class Carrier : std::uint8_t { multicast, fan_out, fabric };
enum class Racks : std::uint8_t { none, tree, chain };

struct Plan {
    unsigned nodes = 2;
    Carrier carrier = Carrier::multicast;
    Racks racks = Racks::none;
    unsigned rack_nodes = 32;  ///< of each rack; the last may have fewer

    unsigned rack_count() const noexcept {
        return racks == Racks::none ? 1 : (nodes + rack_nodes - 1) / rack_nodes;
    }
};

struct Load {
    std::size_t write_bytes = 4;
    std::uint32_t lost_ppm = 0;
};

/// Of one write; as RingFigures has them.
struct Figures {
    std::int64_t p50_ns = 0, p99_ns = 0, last_ns = 0;
    std::int64_t sender_ns = 0, node_ns = 0;
    double sends = 0, datagrams = 0, resent = 0;

    /// Of all nodes together, written far enough apart: then the busiest has no time left.
    double most_writes_a_second() const noexcept {
        return node_ns == 0 ? 0 : 1e9 / static_cast<double>(node_ns);
    }
};

Figures figures_of(const Plan& plan, const Load& load, const Costs& costs);

/// When a write is sent again that not all of a ring's nodes have acknowledged.
std::int64_t probe_ns(unsigned nodes, Carrier carrier, const Load& load, const Costs& costs);

/// Of a node's protocol, beside its bank, when all have written; the code's own sizes, as two
/// simulated rings tell them.
class Memory {
public:
    explicit Memory(std::size_t write_bytes);
    /// In one ring.
    std::size_t bytes(unsigned nodes) const noexcept { return alone_ + nodes * each_; }
    /// Of the node that has the most rings.
    std::size_t bytes(const Plan& plan) const noexcept;

private:
    std::size_t alone_ = 0, each_ = 0;
};

}  // namespace simulator::sizing
