// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Simulated worlds (rmem/sim/world.hpp) whose programs call bbp_init and the rest of
/// billboard/bbp.h.
///
///     rmem::sim::World world(billboard::simulated({.ring = ring}, settings));
///     world.start(0, [](rmem::sim::Process&) { bbp_init(nullptr, nullptr); … });
///
/// A world of the simulator runs the layout of the paper unless told otherwise.

#include "billboard/environment.hpp"
#include "rmem/sim/world.hpp"

namespace billboard {

inline Settings paper_settings() {
    Settings settings;
    settings.board.layout = Layout::paper;
    settings.barrier = BarrierKind::paper;
    return settings;
}

/// The world with the billboard's region in its memory and its settings in its environment.
RMEM_API rmem::sim::WorldConfig simulated(rmem::sim::WorldConfig world,
                                          const Settings& settings = paper_settings());

}  // namespace billboard
