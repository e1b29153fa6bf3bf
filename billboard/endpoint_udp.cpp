// SPDX-License-Identifier: Apache-2.0
#include "billboard/detail/barriers.hpp"
#include "billboard/detail/peers.hpp"
#include "billboard/detail/receiving.hpp"
#include "billboard/detail/sending.hpp"
#include "billboard/detail/viewing.hpp"
#include "billboard/endpoint_core.hpp"
#include "rmem/udp_memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::UdpMemory>::kSlots == fifo_slots_on(rmem::LinkKind::udp));

template class EndpointCore<rmem::UdpMemory, InlineBoard>;
template class EndpointCore<rmem::UdpMemory, PaperBoard>;

}  // namespace billboard
