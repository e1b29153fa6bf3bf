// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Values in a bank as people write them: numbers of a type, or text.
/// Errors: `rmem::Error` (invalid_argument) naming what was given and what would do.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/json.hpp"

namespace tools {

enum class CellType { u32, i32, x32, f32, f64, u8, text };

/// For the `--as` option's help.
inline constexpr const char* kCellTypes = "u32, i32, x32 (hexadecimal), f32, f64, u8 or text";

CellType parse_cell_type(const std::string& name);

/// Bytes of one value; 1 for text.
std::size_t cell_bytes(CellType type) noexcept;

/// One value (for text: all bytes up to the first zero).
std::string cell_text(CellType type, std::span<const std::byte> bytes);
nlohmann::json cell_json(CellType type, std::span<const std::byte> bytes);

/// What stands in memory for a value given on the command line.
std::vector<std::byte> parse_cell(CellType type, const std::string& text);

/// "256", "0x100", "4K"
std::uint64_t parse_offset(const std::string& what, const std::string& text);

}  // namespace tools
