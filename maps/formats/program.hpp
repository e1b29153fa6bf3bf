// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A map for programs that know it when they are compiled: what `rmem map header` writes.
///
/// Each variable is there by its name with its place and type, each structure as a type of the
/// program's that lies in memory as it does in the map's, and the map's hash, by which a program
/// finds out that the ring has another map (rmem_expect_map, rmem::Names::expect).
/// Thread safety: functions of their arguments. Errors: rmem::Error(bad_map): a variable without a
/// place.

#include "maps/map.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace maps {

enum class Language : std::uint8_t { c, cpp, python };

inline constexpr const char* kLanguageNames = "c, c++, python";
std::optional<Language> parse_language(std::string_view name) noexcept;

/// `name` becomes part of the names in C, and the namespace in C++.
[[nodiscard]] std::string program_text(const Map& map, Language language, std::string_view name);

}  // namespace maps
