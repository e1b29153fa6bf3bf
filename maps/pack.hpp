// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Gives places to the variables of a map that have none.
///
/// Deterministic: of the same map the same places. How: docs/design/maps.md, "Packing".
/// Invariants, executed: nothing that had a place is moved; none that gets one overlaps another.
/// Thread safety: a function of its argument. Errors: rmem::Error(bad_map) where they do not fit.

#include "maps/map.hpp"

namespace maps {

RMEM_API void pack(Map& map);

}  // namespace maps
