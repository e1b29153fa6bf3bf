// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Values in a bank on the command line and in JSON (maps/cell.hpp has their types).
///
/// Thread safety: functions of their arguments.
/// Errors: UsageError naming the given text and the valid ones.

#include "maps/cell.hpp"
#include "tools/json.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tools {

using CellType = maps::Cell;

/// For the `--as` option's help.
inline constexpr const char* kCellTypes = maps::kCellNames;

CellType parse_cell_type(const std::string& name);

/// Throws unless a value of the type can be there.
void check_alignment(const CellType& type, const std::string& name, std::uint64_t offset);

/// One value (for text: all bytes up to the first zero).
std::string cell_text(const CellType& type, std::span<const std::byte> bytes);
nlohmann::json cell_json(const CellType& type, std::span<const std::byte> bytes);

/// The bytes in memory of a value given on the command line.
std::vector<std::byte> parse_cell(const CellType& type, const std::string& text);

}  // namespace tools
