// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/endpoint_core.hpp"
#include "rmem/link/udp/memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::UdpMemory>::kSlots == fifo_slots_on(rmem::LinkKind::udp));

BILLBOARD_ENDPOINT_OF(template, , rmem::UdpMemory, InlineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::UdpMemory, PaperBoard);

}  // namespace billboard
