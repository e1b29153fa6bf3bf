// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a variable comes down to: values of one cell, or bits of one, each with its path, and what
/// people mean by them; and the way back, from an offset to the path.
///
/// Invariants, executed: a leaf's value is read from as many bytes as it has.
/// Lifetime: leaves and names refer to the map.
/// Thread safety: values, and functions of their arguments. Errors: none; nothing is returned.

#include "maps/map.hpp"
#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace maps {

struct Leaf {
    std::string path;
    std::uint64_t offset = 0;
    Cell cell;
    std::size_t bytes = 0;
    const Variable* said = nullptr;  ///< who says its unit, scale and limits; null: nobody
    const Field* field = nullptr;    ///< its bits alone

    bool is_scaled() const noexcept {
        return said != nullptr && field == nullptr && (said->scale != 1 || said->bias != 0);
    }
    std::string_view unit() const noexcept {
        return said == nullptr || field != nullptr ? std::string_view() : said->unit;
    }
};

/// Of an array each element, of a structure each member. None: the map has no such path, or it has
/// no place. `most`: leaves, others are left out.
RMEM_API std::vector<Leaf> leaves_of(const Map& map, std::string_view path,
                                     std::size_t most = ~std::size_t{0});

/// What is meant, as people write it.
RMEM_API std::string value_text(const Leaf& leaf, std::span<const std::byte> bytes);
/// Of a field of a number.
RMEM_API std::uint64_t field_value(const Leaf& leaf, std::span<const std::byte> bytes);
/// Of text 0.
RMEM_API double value_of(const Leaf& leaf, std::span<const std::byte> bytes);

struct Given {
    std::vector<std::byte> bytes;
    std::string refused;  ///< not empty: why it cannot be that value
};
/// `before`: what is in the memory now, of which a field's number keeps the other bits.
RMEM_API Given given_value(const Leaf& leaf, const std::string& text,
                           std::span<const std::byte> before);

/// The variables by their places.
class RMEM_API PlaceIndex {
public:
    explicit PlaceIndex(const Map& map);

    /// "aircraft/state.position[1]": the innermost one that has the byte. Empty: nobody's.
    std::string path_at(std::uint64_t offset) const;
    /// The variable that has the byte; of two that overlap, the one that begins later. Null: nobody
    /// has it.
    const Variable* variable_at(std::uint64_t offset) const noexcept;

private:
    const Map& map_;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> placed_;  ///< by their offsets
};

}  // namespace maps
