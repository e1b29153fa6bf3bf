// SPDX-License-Identifier: Apache-2.0
#include "billboard/detail/barriers.hpp"
#include "billboard/detail/peers.hpp"
#include "billboard/detail/receiving.hpp"
#include "billboard/detail/sending.hpp"
#include "billboard/detail/viewing.hpp"
#include "billboard/endpoint_core.hpp"
#include "rmem/direct_memory.hpp"

namespace billboard {

static_assert(InlineBoard<rmem::DirectMemory>::kSlots == fifo_slots_on(rmem::LinkKind::direct));

template class EndpointCore<rmem::DirectMemory, InlineBoard>;
template class EndpointCore<rmem::DirectMemory, PaperBoard>;

}  // namespace billboard
