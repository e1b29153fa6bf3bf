// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The names of all ports' counters, and of a bridge's, block by block of RankSlot::ports. For
/// tools: nothing of a port has to be linked for it.

#include "bridge/counters.hpp"
#include "ports/common/port_block.hpp"
#include "ports/dp/counters.hpp"
#include "ports/fm/counters.hpp"
#include "ports/gamma/counters.hpp"
#include "ports/munet/counters.hpp"

#include <array>
#include <span>

namespace ports {

struct PortNames {
    const char* port;
    std::span<const rmem::CounterName> counters;
};

inline constexpr std::array<PortNames, rmem::kPortBlocks> kPortNames = {{
    {"fm", fm::kCounterNames},
    {"gamma", gamma::kCounterNames},
    {"dp", dp::kCounterNames},
    {"munet", munet::kCounterNames},
    {"bridge", bridge::kCounterNames},
}};
static_assert(port_block(billboard::Class::fm) == 0 && port_block(billboard::Class::gamma) == 1 &&
              port_block(billboard::Class::dp) == 2 && port_block(billboard::Class::munet) == 3);

}  // namespace ports
