// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/cells.hpp"

#include "tools/output.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace tools {

CellType parse_cell_type(const std::string& name) {
    if (const auto type = maps::parse_cell(name)) return *type;
    throw UsageError(fmt::format("there is no type '{}'; give {}", name, kCellTypes));
}

void check_alignment(const CellType& type, const std::string& name, std::uint64_t offset) {
    if (offset % type.alignment() == 0) return;
    throw UsageError(
        fmt::format("{} is not a multiple of {} bytes, as a value of type {} needs; "
                    "types u8, x8 and text may be anywhere",
                    offset_text(offset), type.alignment(), name));
}

std::string cell_text(const CellType& type, std::span<const std::byte> bytes) {
    const std::string text = maps::value_text(type, bytes);
    return type.is_text() ? printable(text) : text;
}

nlohmann::json cell_json(const CellType& type, std::span<const std::byte> bytes) {
    const std::string text = maps::value_text(type, bytes);
    using Kind = CellType::Kind;
    const bool is_number = type.kind == Kind::unsigned_number || type.kind == Kind::signed_number ||
                           type.kind == Kind::real;
    // JSON has no word for infinities and NaN.
    if (!is_number || !std::isfinite(maps::value_of(type, bytes)))
        return type.kind == Kind::boolean ? nlohmann::json(text == "true") : nlohmann::json(text);
    return nlohmann::json::parse(text);
}

std::vector<std::byte> parse_cell(const CellType& type, const std::string& text) {
    if (auto bytes = maps::value_bytes(type, text)) return *std::move(bytes);
    throw UsageError(fmt::format("the value '{}' is not {}; correct it, or choose another type: {}",
                                 text, maps::wanted_of(type), kCellTypes));
}

}  // namespace tools
