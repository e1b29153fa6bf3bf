// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A map's file as our own programs write it. Thread safety: a function of its argument.

#include "maps/map.hpp"

#include <string>

namespace maps {

/// Read (maps/map_file.hpp), it is the map. Without comments.
[[nodiscard]] RMEM_API std::string file_of(const Map& map);

}  // namespace maps
