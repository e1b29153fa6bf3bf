// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A map's file, which is TOML: docs/design/maps.md has its keys.
///
/// A file of ten megabytes is read in less time than toml++ takes for a third of it: sections whose
/// lines are all plain are read here, and what is more than that is toml++'s.
/// Thread safety: functions of their arguments.
/// Errors: rmem::Error(bad_map), its sentence beginning with file:line.

#include "maps/map.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace maps {

inline constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

[[nodiscard]] RMEM_API Map read_map(const std::string& path);
/// `path` is for messages. `is_plain`: sections may be read here.
[[nodiscard]] RMEM_API Map map_of(std::string_view text, const std::string& path,
                                  bool is_plain = true);

}  // namespace maps
