// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/endpoint_core.hpp"
#include "rmem/link/direct/memory.hpp"

namespace billboard {

BILLBOARD_ENDPOINT_OF(template, , rmem::DirectMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::DirectMemory, PaperBoard);

}  // namespace billboard
