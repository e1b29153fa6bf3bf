// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A scalar type, and its values as people write them.
///
/// A type is what the bits mean (u, i, x, bits, f), how many there are, and their byte order: this
/// host's, unless the name ends with `be` or `le`.
/// Invariant, executed: what is shown as a value has as many bytes as its type.
/// Thread safety: values and functions of their arguments. Errors: none; nothing is returned.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace maps {

struct Cell {
    enum class Kind : std::uint8_t {
        unsigned_number,
        signed_number,
        hexadecimal,
        bits,
        real,
        boolean,
        text
    };

    Kind kind = Kind::unsigned_number;
    std::uint8_t bytes = 4;   ///< of one value; 1 for text
    bool is_swapped = false;  ///< the other byte order than this host's

    bool is_text() const noexcept { return kind == Kind::text; }
    bool is_whole() const noexcept { return !is_text() && kind != Kind::real; }
    /// The offset of one must be a multiple of this: a value of at most a word lies in one, a
    /// larger one in words.
    RMEM_API std::size_t alignment() const noexcept;

    friend bool operator==(const Cell&, const Cell&) = default;
};

/// For people.
inline constexpr const char* kCellNames =
    "u8 u16 u32 u64 (unsigned), i8 … i64 (signed), x8 … x64 (hexadecimal), bits8 … bits64, f32 "
    "f64, bool (a byte), "
    "text; with be or le at the end (u16be): big- or little-endian";

RMEM_API std::optional<Cell> parse_cell(std::string_view name);
RMEM_API std::string name_of(const Cell& cell);

/// One value (of text: all bytes up to the first zero).
RMEM_API std::string value_text(const Cell& cell, std::span<const std::byte> bytes);
/// As a number; of text 0.
RMEM_API double value_of(const Cell& cell, std::span<const std::byte> bytes);
/// The bytes in memory of a value as people write it; none: it is not what `wanted_of` says.
RMEM_API std::optional<std::vector<std::byte>> value_bytes(const Cell& cell,
                                                           const std::string& text);
RMEM_API std::string wanted_of(const Cell& cell);

}  // namespace maps
