// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/endpoint_core.hpp"
#include "rmem/link/sim/memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::sim::SimMemory>::kSlots == fifo_slots_on(rmem::LinkKind::sim));

BILLBOARD_ENDPOINT_OF(template, , rmem::sim::SimMemory, InlineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::sim::SimMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::sim::SimMemory, PaperBoard);

}  // namespace billboard
