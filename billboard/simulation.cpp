// SPDX-License-Identifier: Apache-2.0
#include "billboard/simulation.hpp"

#include <fmt/format.h>

namespace billboard {

rmem::sim::WorldConfig simulated(rmem::sim::WorldConfig world, const Settings& settings) {
    world.ring.link = rmem::LinkKind::sim;
    const Geometry geometry(world.ring, settings.board);
    world.ring.system_bytes = geometry.region_bytes();
    world.ring.system_hash = geometry.hash();
    world.environment["RMEM_LAYOUT"] = name_of(settings.board.layout);
    world.environment["RMEM_PARTITION"] = fmt::format("{}", geometry.data_bytes());
    world.environment["RMEM_BARRIER"] =
        settings.barrier == BarrierKind::paper ? "paper" : "arrival";
    return world;
}

}  // namespace billboard
