// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One seed of the hunt on the billboard: a small ring, traffic, and the faults that meet it.
///
/// Thread safety: values. Errors: simulator/hunt/seeded.hpp's.

#include "simulator/hunt/ring_scenario.hpp"
#include "simulator/hunt/seeded.hpp"

#include <array>
#include <cstdint>

namespace simulator::bbp {

struct Scenario : Seeded<Scenario, Fault, 2000, 20>, RingScenario {
    static constexpr std::array kFaultKinds = {
        FaultKind::delay,     FaultKind::clog,     FaultKind::lose,  FaultKind::duplicate,
        FaultKind::cut_cable, FaultKind::cut_link, FaultKind::kill,  FaultKind::fail_node,
        FaultKind::restart,   FaultKind::stop,     FaultKind::stall, FaultKind::slow_reader};

    bool loses = false;  ///< faults that lose writes are among them

    static Scenario of_seed(std::uint64_t seed);
};

}  // namespace simulator::bbp
