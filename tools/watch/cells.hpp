// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Values in a bank as people write them: numbers of a type, or text.
///
/// A type is what the bits mean (u, i, x, bits, f), how many there are, and their byte order: this
/// host's, unless the name ends with `be` or `le`.
/// Invariant, executed: what is shown as a value has as many bytes as its type.
/// Thread safety: values and functions of their arguments.
/// Errors: UsageError naming the given text and the valid ones.

#include "tools/json.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tools {

struct CellType {
    enum class Kind { unsigned_number, signed_number, hexadecimal, bits, real, text };

    Kind kind = Kind::unsigned_number;
    std::size_t bytes = 4;    ///< of one value; 1 for text
    bool is_swapped = false;  ///< the other byte order than this host's

    bool is_text() const { return kind == Kind::text; }
    /// The offset of one must be a multiple of this: a value of at most a word lies in one, a
    /// larger one in words.
    std::size_t alignment() const;

    friend bool operator==(const CellType&, const CellType&) = default;
};

/// For the `--as` option's help.
inline constexpr const char* kCellTypes =
    "u8 u16 u32 u64 (unsigned), i8 … i64 (signed), x8 … x64 (hexadecimal), bits8 … bits64, f32 "
    "f64, "
    "text; with be or le at the end (u16be): big- or little-endian";

CellType parse_cell_type(const std::string& name);

/// Throws unless a value of the type can be there.
void check_alignment(const CellType& type, const std::string& name, std::uint64_t offset);

/// One value (for text: all bytes up to the first zero).
std::string cell_text(const CellType& type, std::span<const std::byte> bytes);
nlohmann::json cell_json(const CellType& type, std::span<const std::byte> bytes);

/// The bytes in memory of a value given on the command line.
std::vector<std::byte> parse_cell(const CellType& type, const std::string& text);

}  // namespace tools
