// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/endpoint_core.hpp"
#include "rmem/link/ring/memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::RingMemory>::kSlots == fifo_slots_on(rmem::LinkKind::ring));

BILLBOARD_ENDPOINT_OF(template, , rmem::RingMemory, InlineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::RingMemory, PaperBoard);

}  // namespace billboard
