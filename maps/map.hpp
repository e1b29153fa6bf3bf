// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A map: the variables of a ring's memory, by name.
///
/// Read from a file (maps/map_file.hpp), placed (maps/pack.hpp), checked (maps/check.hpp). Offsets
/// are bytes from the begin of the user's memory. Terms: docs/design/maps.md.
///
/// Structures are at most kMostDepth in one another.
/// Invariants, executed: no two variables of a name, no two structures of a name, and a structure
/// is made of earlier ones alone; each type has at least a byte.
/// Thread safety: a value. Errors: `add` and `at` throw rmem::Error(bad_map).

#include "maps/cell.hpp"
#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace maps {

/// Times in a second. What is written as often has lines of its own.
inline constexpr double kOften = 100;

struct Owner {
    enum class Kind : std::uint8_t { nobody, node, rank };
    Kind kind = Kind::nobody;
    unsigned number = 0;

    friend auto operator<=>(const Owner&, const Owner&) = default;
};
RMEM_API std::string text_of(const Owner& owner);

/// What other formats say and a map does not, by their words: it goes back into such a file.
using Other = std::vector<std::pair<std::string, std::string>>;
/// Empty: it is not said.
RMEM_API std::string_view other_of(const Other& other, std::string_view key) noexcept;

/// Bits of a whole number.
struct Field {
    std::string name;
    unsigned first = 0;
    unsigned bits = 1;

    friend bool operator==(const Field&, const Field&) = default;
};

struct Type {
    static constexpr std::uint32_t kNoStructure = ~std::uint32_t{0};

    Cell cell;                ///< where it is no structure
    std::uint32_t count = 1;  ///< elements; of a text, bytes
    std::uint32_t structure = kNoStructure;
    bool is_array = false;

    friend bool operator==(const Type&, const Type&) = default;
};

/// A variable, or a member of a structure.
struct Variable {
    static constexpr std::uint64_t kUnplaced = ~std::uint64_t{0};
    static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

    std::string name;
    std::uint64_t offset = kUnplaced;  ///< of a member, in its structure
    Type type;
    Owner owner;
    unsigned line = 0;           ///< of its file; 0: of none
    double scale = 1, bias = 0;  ///< what is meant is what is stored, times scale, plus bias
    double minimum = -kUnlimited, maximum = kUnlimited;  ///< of what is meant
    double rate_hz = 0;                                  ///< 0: nothing is said
    std::string unit, description, initial;
    std::vector<Field> fields;
    Other other;

    bool is_placed() const noexcept { return offset != kUnplaced; }
    friend bool operator==(const Variable&, const Variable&) = default;
};

inline constexpr unsigned kMostDepth = 32;

struct Structure {
    std::string name;
    std::vector<Variable> members;
    std::size_t bytes = 0, alignment = 1;
    /// Known when it is added: what an offset of one must be a multiple of, structures in one
    /// another, and the hash of how it lies in memory. Each would take time by the power of the
    /// depth.
    std::size_t word_alignment = 1;
    unsigned depth = 1;
    std::uint64_t layout = 0;
    unsigned line = 0;

    friend bool operator==(const Structure&, const Structure&) = default;
};

struct RingFacts {
    unsigned nodes = 0, ranks = 0;  ///< 0: nothing is said
    std::uint64_t bytes = 0;        ///< of the user's memory; 0: nothing is said
    bool is_swapped = false;        ///< of cells whose name does not say it
    bool sends_whole_words = false;
    bool has_canaries = false;  ///< what is no variable's is nobody's (rmem/ring/owners.hpp)
    Other other;

    friend bool operator==(const RingFacts&, const RingFacts&) = default;
};

/// What a path leads to.
struct Place {
    std::uint64_t offset = 0;
    Type type;
    const Variable* variable = nullptr;  ///< the path's first part
    const Variable* leaf = nullptr;      ///< its last one that has a unit
    const Field* field = nullptr;        ///< its bits alone
};

class RMEM_API Map {
public:
    RingFacts ring;

    std::span<const Variable> variables() const noexcept { return variables_; }
    std::span<const Structure> structures() const noexcept { return structures_; }

    void add(Variable variable);
    /// Its members get places: those without one follow the one before, as in C.
    void add(Structure structure);
    void place(std::size_t index, std::uint64_t offset) { variables_[index].offset = offset; }
    void reserve(std::size_t variables);

    /// "f64", "u16be[8]", "text[80]", a structure's name. None: it is no type.
    std::optional<Type> parse_type(std::string_view text) const;
    std::string name_of(const Type& type) const;
    std::size_t bytes_of(const Type& type) const noexcept;
    /// What an offset must be a multiple of.
    std::size_t alignment_of(const Type& type) const noexcept;
    /// What compilers want: of eight bytes, eight.
    std::size_t natural_alignment_of(const Type& type) const noexcept;

    const Variable* variable(std::string_view name) const noexcept;
    /// None: there is none (`nearest` helps).
    std::optional<Place> find(std::string_view path) const;
    /// Throws Error(bad_map) with the nearest where there is none.
    Place at(std::string_view path) const;
    /// " (did you mean 'aircraft/altitude'?)", or nothing.
    std::string nearest(std::string_view path) const;

    /// Of what decides where bytes lie, how, and who writes them.
    std::uint64_t hash() const;
    /// Of what decides how a structure's bytes lie in it.
    std::uint64_t layout_of(std::uint32_t structure) const { return structures_[structure].layout; }

private:
    void finish(Structure& structure) const;
    std::uint32_t* slot_of(std::string_view name) noexcept;
    void grow();

    std::vector<Variable> variables_;
    std::vector<Structure> structures_;
    std::vector<std::uint32_t> slots_;  ///< by hash: places in variables_, and one
};

/// Whether it can be a variable's: it is no offset, and has no brackets and control characters.
RMEM_API bool is_name(std::string_view text) noexcept;
/// Whether it can lead to one, and is no offset.
inline bool is_path(std::string_view text) noexcept {
    return is_name(text.substr(0, text.find('[')));
}

}  // namespace maps
