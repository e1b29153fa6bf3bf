// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/barriers.hpp"
#include "billboard/core/endpoint_core.hpp"
#include "billboard/core/peers.hpp"
#include "billboard/core/receiving.hpp"
#include "billboard/core/sending.hpp"
#include "billboard/core/viewing.hpp"
#include "rmem/link/udp/memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::UdpMemory>::kSlots == fifo_slots_on(rmem::LinkKind::udp));

template class EndpointCore<rmem::UdpMemory, InlineBoard>;
template class EndpointCore<rmem::UdpMemory, PaperBoard>;

}  // namespace billboard
