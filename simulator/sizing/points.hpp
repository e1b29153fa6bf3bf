// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The points of `rmem sim scale --link udp | fabric`: rings of 8 to 4096 nodes, each way that
/// their link can be laid out.
///
/// A ring of the udp link that the link itself allows (rmem::kMaxNodes), and that is no larger than
/// the task says, is run: real cores in virtual time (simulator/sizing/core_ring.hpp). Anything
/// else is computed (simulator/sizing/model.hpp). When all have joined is known of rings that can
/// be run; of racks it is when the largest rack has, and after it the ring of forwarders.
///
/// Errors, units and thread safety: simulator/sizing/core_ring.hpp.

#include "simulator/sizing/model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace simulator::sizing {

inline constexpr unsigned kLeastSized = 8, kMostSized = 4096;

/// Of 256 nodes one run takes minutes of a processor.
inline constexpr unsigned kMostRun = 128;

struct Task {
    bool is_fabric = false;
    unsigned most_nodes = 64;
    unsigned most_run = kMostRun;
    unsigned rack_nodes = 32;
    Load load;
    Costs costs = udp_costs;
};

struct SizedPoint {
    Plan plan;
    bool was_run = false;  ///< by real cores; else it was computed
    Figures figures;
    std::optional<std::int64_t> join_ns;      ///< nullopt: no such ring exists, or none was run
    std::optional<std::size_t> memory_bytes;  ///< of the node that needs most; nullopt as above
};

/// Whether real cores run it, in rings of that many nodes at most.
bool can_run(const Plan& plan, unsigned most_nodes) noexcept;

/// Of a ring that can be run: its figures by real cores.
SizedPoint run(const Plan& plan, const Load& load, const Costs& costs);

/// By the carriers and layouts of the link, each from small to large.
std::vector<Plan> plans_for(const Task& task);
std::vector<SizedPoint> measure(const Task& task);

/// multicast, fan-out or fabric
const char* name_of(Carrier carrier) noexcept;
/// none, tree or chain
const char* name_of(Racks racks) noexcept;

}  // namespace simulator::sizing
