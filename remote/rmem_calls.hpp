// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What calls of rmem.h do not have for a node elsewhere: opening one, and mapping a part of it.
///
/// Thread safety and errors: as rmem.h.

#include "remote/client.hpp"
#include "rmem/rmem.h"

#include <cstddef>

namespace remote {

/// As rmem_open_with; RMEM_ESYS where nothing serves one.
[[nodiscard]] int open_node(rmem_node** node, const Address& address) noexcept;

/// As rmem_stores, of these whole pages alone: the rest of the memory there is not the node's.
[[nodiscard]] int map_node(rmem_node* node, std::size_t offset, std::size_t bytes,
                           void** memory) noexcept;

}  // namespace remote
