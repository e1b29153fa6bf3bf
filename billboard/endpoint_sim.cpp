// SPDX-License-Identifier: Apache-2.0
#include "billboard/detail/barriers.hpp"
#include "billboard/detail/peers.hpp"
#include "billboard/detail/receiving.hpp"
#include "billboard/detail/sending.hpp"
#include "billboard/detail/viewing.hpp"
#include "billboard/endpoint_core.hpp"
#include "rmem/sim/sim_memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::sim::SimMemory>::kSlots == fifo_slots_on(rmem::LinkKind::sim));

template class EndpointCore<rmem::sim::SimMemory, InlineBoard>;
template class EndpointCore<rmem::sim::SimMemory, PaperBoard>;

}  // namespace billboard
