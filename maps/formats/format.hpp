// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Tables of other programs, as maps and back.
///
/// Such a table is one node's: what it writes is that node's, and what it reads is nobody's, since
/// the table does not say whose. What it says and a map does not is kept (Variable::other), so a
/// table that is read and written is the same; what a map says and the table cannot is listed.
/// Shapes and sources: the format's own file.
/// Untrusted: the text. Thread safety: functions of their arguments.
/// Errors: rmem::Error(bad_map), its sentence beginning with file:line.

#include "maps/map.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maps {

enum class Format : std::uint8_t { map, veristand_blocks, veristand_points, partitions, ddf, ipc };

inline constexpr const char* kFormatNames =
    "map, veristand-dma (CSV of DMA blocks), veristand-points (point table), partitions (xPC and "
    "Simulink partition structures), ddf (Orchestra's XML), ipc (LIGO's .ipc)";
std::optional<Format> parse_format(std::string_view name) noexcept;
/// By how it begins.
std::optional<Format> format_of(std::string_view text) noexcept;

/// A table of that node's.
[[nodiscard]] Map import_map(Format format, std::string_view text, const std::string& path,
                             unsigned node);

struct Exported {
    std::string text;
    std::vector<std::string> lost;  ///< sentences: what the format cannot say
};
/// The table of that node.
[[nodiscard]] Exported export_map(Format format, const Map& map, unsigned node);

}  // namespace maps
