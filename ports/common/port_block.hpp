// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which of a rank's blocks of counters (RankSlot::ports) is a port's: they are in the order of
/// the ports' classes.

#include "billboard/boards/layout.hpp"
#include "rmem/ring/counters.hpp"

#include <cstddef>

namespace ports {

constexpr std::size_t port_block(billboard::Class port) noexcept {
    return static_cast<std::size_t>(port) - static_cast<std::size_t>(billboard::Class::fm);
}
static_assert(port_block(billboard::Class::munet) + 2 == rmem::kPortBlocks);  // and a bridge's

}  // namespace ports
