// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/endpoint_core.hpp"
#include "rmem/link/direct/memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::DirectMemory>::kSlots == fifo_slots_on(rmem::LinkKind::direct));

BILLBOARD_ENDPOINT_OF(template, , rmem::DirectMemory, InlineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::DirectMemory, PaperBoard);

}  // namespace billboard
