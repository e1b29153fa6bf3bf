// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/endpoint_core.hpp"
#include "rmem/link/udp/memory.hpp"

namespace billboard {

BILLBOARD_ENDPOINT_OF(template, , rmem::UdpMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(template, , rmem::UdpMemory, PaperBoard);

}  // namespace billboard
