// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One seed, run.
///
/// Thread safety: a run uses the thread's one simulated world at a time.
/// Equal scenarios give equal findings, trace hash included, with every compiler.

#include "simulator/hunt/findings.hpp"
#include "simulator/hunt/scenario.hpp"
#include "simulator/hunt/sights.hpp"
#include "simulator/hunt/subject.hpp"
#include "simulator/hunt/traffic.hpp"

#include <cstdint>

namespace simulator {

struct HuntOptions {
    bool hash = false;                     ///< of the trace, into the findings
    rmem::sim::Observer* trace = nullptr;  ///< gets every event, too
    OpenEndpoint open;                     ///< null: as every program
};

/// Runs a scenario to its end, and checks it all the way.
Findings run_scenario(const Scenario& scenario, const HuntOptions& options = {});

/// The billboard on the ring's wire model. `open`: null: as every program.
Subject billboard_subject(OpenEndpoint open = {});

}  // namespace simulator
