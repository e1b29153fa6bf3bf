// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The variables of a node's memory, by their names and types.
///
///     rmem::Node node = rmem::Node::open();
///     const rmem::Variable<double> altitude(node, "aircraft/altitude");
///     altitude = 1000.0;              // appears in every other bank
///     const double now = altitude;    // a load from the own bank
///
/// A name is looked up once, and its type compared: what is f64 in the map is no Variable<float>.
/// From then on an access is the node's own, with the offset that was found: no name, no map, no
/// more instructions. A T is bool, a whole number, float, double, std::array of these, std::array
/// of char for text, or a structure that `rmem map header` has written.
/// Order, words, room and progress are the node's (rmem/node.hpp): a value of more than a word may
/// be seen in part, unless it is published. Scales and units are for people: a program loads and
/// stores what lies in the memory.
/// Lifetime: a Variable refers to its Node, which must stay where it is.
/// Thread safety: as the node's calls.
/// Errors: rmem::Error(bad_map): no map, no such name (the nearest is named), another type.

#include "maps/map.hpp"
#include "rmem/error.hpp"
#include "rmem/node.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace maps {

/// A structure of a program that is one of a map's: `rmem map header` writes one of these beside
/// it, with `name` and `layout`.
template <class T>
struct Described {};

/// What a program takes a variable for.
struct Wanted {
    Cell cell;
    std::uint32_t count = 1;
    bool is_array = false;
    std::string_view structure;  ///< empty: it is none
    std::uint64_t layout = 0;    ///< Map::layout_of
    std::size_t bytes = 0;
};

template <class T>
struct ArrayOf {};
template <class T, std::size_t kCount>
struct ArrayOf<std::array<T, kCount>> {
    using Element = T;
};

template <class T, std::endian kOrder>
constexpr Wanted wanted() {
    Wanted all;
    all.bytes = sizeof(T);
    if constexpr (requires { Described<T>::layout; }) {
        all.structure = Described<T>::name;
        all.layout = Described<T>::layout;
    } else if constexpr (requires { typename ArrayOf<T>::Element; }) {
        using Element = typename ArrayOf<T>::Element;
        static_assert(
            !requires { typename ArrayOf<Element>::Element; }, "a map has no such type");
        all = wanted<Element, kOrder>();
        all.bytes = sizeof(T);
        all.count = static_cast<std::uint32_t>(sizeof(T) / sizeof(Element));
        all.is_array = all.cell.kind != Cell::Kind::text;
    } else {
        using Meaning = Cell::Kind;
        all.cell.kind = std::is_same_v<T, bool>       ? Meaning::boolean
                        : std::is_same_v<T, char>     ? Meaning::text
                        : std::is_floating_point_v<T> ? Meaning::real
                        : std::is_signed_v<T>         ? Meaning::signed_number
                                                      : Meaning::unsigned_number;
        static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "a map has no such type");
        all.cell.bytes = sizeof(T);
        all.cell.is_swapped = sizeof(T) > 1 && kOrder != std::endian::native;
    }
    return all;
}

/// A variable whose place and type are known when the program is compiled (`rmem map header`).
template <class T, std::endian kOrder = std::endian::native>
struct Known {
    std::size_t offset;
};

/// Bits of a whole number, in the word that they are in.
struct BitPlace {
    std::size_t word = 0;
    std::uint32_t mask = 0;
    unsigned shift = 0;
    rmem::WordPart part{};  ///< the number's bytes
};
/// None: it is no field, or it lies in two words, or in a number of the other byte order.
RMEM_API std::optional<BitPlace> bit_place_of(const Place& place) noexcept;

/// Throws Error(bad_map) where the map has none, or has it as another type.
RMEM_API std::size_t offset_of(const Map& map, std::string_view path, const Wanted& wanted);

}  // namespace maps

namespace rmem {

/// The map of a node's memory: the ring's, or RMEM_MAP's.
class RMEM_API Names {
public:
    explicit Names(Node& node);
    Names(Node& node, std::shared_ptr<const maps::Map> map) : node_(&node), map_(std::move(map)) {}

    Node& node() const noexcept { return *node_; }
    const maps::Map& map() const noexcept { return *map_; }
    /// Throws Error(bad_map) for a name that is not there.
    maps::Place find(std::string_view path) const;
    /// Throws Error(bad_map) where a program was compiled for another map (its header's hash).
    void expect(std::uint64_t hash) const;

private:
    Node* node_;
    std::shared_ptr<const maps::Map> map_;
};

/// Waits for room. Throws Error(not_permitted) where the others have dropped the node.
RMEM_API void write_with_room(Node& node, std::size_t offset, const void* from, std::size_t bytes);

/// `kOrder`: of the cells in the memory.
template <class T, std::endian kOrder = std::endian::native>
class Variable {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Variable(Node& node, std::string_view path) : Variable(Names(node), path) {}
    Variable(const Names& names, std::string_view path)
        : node_(&names.node()),
          offset_(maps::offset_of(names.map(), path, maps::wanted<T, kOrder>())) {}

    Variable(Node& node, const maps::Known<T, kOrder>& known) noexcept
        : node_(&node), offset_(known.offset) {}

    std::size_t offset() const noexcept { return offset_; }

    T load() const {
        T value;
        if constexpr (std::is_same_v<T, bool>) {
            std::uint8_t byte = 0;  // others may have stored any
            node_->read(offset_, &byte, sizeof byte);
            return byte != 0;
        } else if constexpr (sizeof(T) == kWordBytes) {
            const std::uint32_t word = node_->load(offset_);
            std::memcpy(&value, &word, sizeof value);
        } else {
            node_->read(offset_, &value, sizeof value);
        }
        return in_order(value);
    }
    operator T() const { return load(); }  // NOLINT: it is a value

    [[nodiscard]] WriteResult store(const T& value) const {
        const T stored = in_order(value);
        if constexpr (sizeof(T) == kWordBytes) {
            std::uint32_t word;
            std::memcpy(&word, &stored, sizeof word);
            return node_->write_word(offset_, word);
        } else {
            return node_->write(offset_, &stored, sizeof stored);
        }
    }
    /// Waits for room.
    const Variable& operator=(const T& value) const {  // NOLINT: the memory's, not its own
        const T stored = in_order(value);
        write_with_room(*node_, offset_, &stored, sizeof stored);
        return *this;
    }

    /// The word that changes when the value does, or a part of it, for Node::watch.
    void watch(Trigger trigger = Trigger::any_write) const {
        const std::size_t first = offset_ / kWordBytes * kWordBytes;
        const std::size_t end = (offset_ + sizeof(T) + kWordBytes - 1) / kWordBytes * kWordBytes;
        node_->watch(first, end - first, trigger);
    }

private:
    static T in_order(T value) noexcept {
        if constexpr (kOrder == std::endian::native) {
            return value;
        } else {
            constexpr std::size_t kCell = maps::wanted<T, kOrder>().cell.bytes;
            auto* const bytes = reinterpret_cast<unsigned char*>(&value);
            for (std::size_t at = 0; at < sizeof(T); at += kCell) {
                for (std::size_t i = 0; i < kCell / 2; ++i)
                    std::swap(bytes[at + i], bytes[at + kCell - 1 - i]);
            }
            return value;
        }
    }

    Node* node_;
    std::size_t offset_;
};

/// Bits of a whole number ("aircraft/status.ready"). To store them is to load their word and to
/// write it, so all bits of a number have one writer.
class RMEM_API Bits {
public:
    Bits(Node& node, std::string_view path) : Bits(Names(node), path) {}
    Bits(const Names& names, std::string_view path);

    Bits(Node& node, const maps::BitPlace& place) noexcept : node_(&node), at_(place) {}

    std::uint32_t load() const { return (node_->load(at_.word) & at_.mask) >> at_.shift; }
    operator std::uint32_t() const { return load(); }  // NOLINT: it is a value
    /// What does not fit in them is left out.
    [[nodiscard]] WriteResult store(std::uint32_t value) const {
        const std::uint32_t others = node_->load(at_.word) & ~at_.mask;
        return node_->write_part(at_.word, others | (value << at_.shift & at_.mask), at_.part);
    }
    /// Waits for room.
    const Bits& operator=(std::uint32_t value) const;  // NOLINT: the memory's, not its own

    const maps::BitPlace& place() const noexcept { return at_; }

private:
    Node* node_;
    maps::BitPlace at_;
};

}  // namespace rmem
