// SPDX-License-Identifier: Apache-2.0
#include "billboard/detail/barriers.hpp"
#include "billboard/detail/peers.hpp"
#include "billboard/detail/receiving.hpp"
#include "billboard/detail/sending.hpp"
#include "billboard/detail/viewing.hpp"
#include "billboard/endpoint_core.hpp"
#include "rmem/ring_memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::RingMemory>::kSlots == fifo_slots_on(rmem::LinkKind::ring));

template class EndpointCore<rmem::RingMemory, InlineBoard>;
template class EndpointCore<rmem::RingMemory, PaperBoard>;

}  // namespace billboard
