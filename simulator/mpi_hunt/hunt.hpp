// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One seed of the hunt on MPI's messages, run: the device, the matching and the channel interface
/// of mpi_channel/ over the billboard on the ring's wire model, against a plain model of MPI's
/// promises (simulator/mpi_hunt/model.hpp).
///
/// Thread safety: a run uses the thread's one simulated world at a time.
/// Equal scenarios give equal findings, trace hash included, with every compiler.

#include "simulator/hunt/ring_run.hpp"
#include "simulator/hunt/subject.hpp"
#include "simulator/mpi_hunt/coverage.hpp"
#include "simulator/mpi_hunt/scenario.hpp"
#include "simulator/mpi_hunt/tap.hpp"

namespace simulator::mpi {

struct HuntOptions : RingOptions {
    DoMischief mischief;  ///< tests of the hunt plant bugs
};

Findings run_scenario(const Scenario& scenario, const HuntOptions& options = {});

Subject subject(const HuntOptions& options = {});

}  // namespace simulator::mpi
