// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/endpoint_core.hpp"
#include "rmem/link/sim/memory.hpp"

namespace billboard {

BILLBOARD_ENDPOINT_OF(template, , rmem::sim::SimMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::sim::SimMemory, PieceBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::sim::SimMemory, PaperBoard);

}  // namespace billboard
