// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/barriers.hpp"
#include "billboard/core/endpoint_core.hpp"
#include "billboard/core/peers.hpp"
#include "billboard/core/receiving.hpp"
#include "billboard/core/sending.hpp"
#include "billboard/core/viewing.hpp"
#include "rmem/link/sim/memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::sim::SimMemory>::kSlots == fifo_slots_on(rmem::LinkKind::sim));

template class EndpointCore<rmem::sim::SimMemory, InlineBoard>;
template class EndpointCore<rmem::sim::SimMemory, PaperBoard>;

}  // namespace billboard
