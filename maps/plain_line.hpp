// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Lines of TOML that are plain: `key = value` with a number, a boolean, or a string of ASCII
/// without escapes. What is not plain may be right all the same: toml++ says.
/// Thread safety: functions of their arguments. Errors: none.

#include "rmem/error.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace maps {

inline constexpr std::string_view kBlank = " \t\r";

struct Value {
    enum class Kind : std::uint8_t { text, integer, real, boolean, other };
    Kind kind = Kind::other;
    std::string_view text;
    std::int64_t integer = 0;  ///< of a boolean 0 or 1
    double real = 0;           ///< of an integer as well
};

struct Entry {
    std::string_view key;
    Value value;
};

/// Nothing: the line is not plain. One of blanks and comment has an empty key.
RMEM_API std::optional<Entry> plain_entry(std::string_view line);
/// Whether there is a character that TOML forbids, in comments and texts as well.
RMEM_API bool has_control(std::string_view text);
RMEM_API void skip_blank(std::string_view& line);

}  // namespace maps
