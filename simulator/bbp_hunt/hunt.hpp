// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One seed of the hunt on the billboard, run: programs that use its endpoints, on the ring's wire
/// model.
///
/// Thread safety: a run uses the thread's one simulated world at a time.
/// Equal scenarios give equal findings, trace hash included, with every compiler.

#include "simulator/bbp_hunt/coverage.hpp"
#include "simulator/bbp_hunt/scenario.hpp"
#include "simulator/bbp_hunt/traffic.hpp"
#include "simulator/hunt/findings.hpp"
#include "simulator/hunt/ring_run.hpp"
#include "simulator/hunt/subject.hpp"

namespace simulator::bbp {

struct HuntOptions : RingOptions {
    OpenEndpoint open;  ///< null: as every program; tests of the hunt plant faulty ones
};

/// Runs a scenario to its end, and checks it all the way.
Findings run_scenario(const Scenario& scenario, const HuntOptions& options = {});

Subject subject(const HuntOptions& options = {});

}  // namespace simulator::bbp
