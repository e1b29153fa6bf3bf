// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One seed of the hunt on MPI's messages: a small ring, the messages, and the faults that meet it.
///
/// Thread safety: values. Errors: simulator/hunt/seeded.hpp's.

#include "simulator/hunt/ring_scenario.hpp"
#include "simulator/hunt/seeded.hpp"

#include <array>
#include <cstdint>

namespace simulator::mpi {

/// MPI's ranks do not come back.
struct Scenario : Seeded<Scenario, Fault, 300, 10>, RingScenario {
    static constexpr std::array kFaultKinds = {
        FaultKind::delay,     FaultKind::clog,  FaultKind::duplicate,
        FaultKind::cut_cable, FaultKind::kill,  FaultKind::fail_node,
        FaultKind::stop,      FaultKind::stall, FaultKind::deaf};

    /// Messages long enough that unexpected ones take all their credit, on a link that takes no
    /// time. Rank 0 then sends nothing, so that credit comes back by itself, and receives seldom.
    bool heavy = false;

    static Scenario of_seed(std::uint64_t seed);
};

}  // namespace simulator::mpi
