// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One seed of the hunt on link udp or fabric, run.
///
/// Cores of 2 to 5 nodes write, on a simulated network, in virtual time, while the scenario's
/// faults meet them. Then all faults end, nodes that are gone are started again, and within
/// kSettleNs all must be in one ring with equal banks, with room to write and nothing under way;
/// ledger.hpp says what is checked before that. At last comes a trial (trials.hpp).
///
/// Thread safety: none. Equal scenarios give equal findings, trace hash included, with every
/// compiler.

#include "rmem/link/udp/protocol/datagram.hpp"
#include "simulator/hunt/subject.hpp"
#include "simulator/udp_hunt/coverage.hpp"
#include "simulator/udp_hunt/scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace simulator::udp {

/// When the faults have ended: until all is well.
inline constexpr std::int64_t kSettleNs = 10'000'000'000;

struct HuntOptions {
    bool hash = false;       ///< of all that happens, into the findings
    bool is_fabric = false;  ///< link fabric: other trouble meets the same cores
    std::function<void(const std::string&)> trace;  ///< gets a line for all that happens
    std::optional<FaultKind>
        trial;  ///< at the end this one, not the seed's (simulator/udp_hunt/trials.hpp)
    // Tests of the hunt plant bugs:
    /// Sees each datagram before it leaves; a changed one is not signed again.
    std::function<void(unsigned from, std::span<std::byte>)> alter;
    /// False: this batch is not stored.
    std::function<bool(unsigned node, unsigned origin, const rmem::udp::Batch&)> may_store;
};

Findings run_scenario(const Scenario& scenario, const HuntOptions& options = {});

/// Link udp.
Subject subject(const HuntOptions& options = {});
Subject fabric_subject(HuntOptions options = {});

}  // namespace simulator::udp
