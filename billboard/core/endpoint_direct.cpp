// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/barriers.hpp"
#include "billboard/core/endpoint_core.hpp"
#include "billboard/core/peers.hpp"
#include "billboard/core/receiving.hpp"
#include "billboard/core/sending.hpp"
#include "billboard/core/viewing.hpp"
#include "rmem/link/direct/memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::DirectMemory>::kSlots == fifo_slots_on(rmem::LinkKind::direct));

template class EndpointCore<rmem::DirectMemory, InlineBoard>;
template class EndpointCore<rmem::DirectMemory, PaperBoard>;

}  // namespace billboard
