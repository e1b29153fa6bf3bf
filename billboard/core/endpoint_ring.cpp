// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/endpoint_core.hpp"
#include "rmem/link/ring/memory.hpp"

namespace billboard {

BILLBOARD_ENDPOINT_OF(template, , rmem::RingMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::RingMemory, PaperBoard);

}  // namespace billboard
