// SPDX-License-Identifier: Apache-2.0
#include "maps/names.hpp"

#include "maps/ring_map.hpp"
#include "rmem/base/word_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace maps {

namespace {

/// As a program says it; the map has no such types.
std::string name_of(const Wanted& wanted) {
    std::string name = wanted.structure.empty() ? maps::name_of(wanted.cell)
                                                : fmt::format("structure {}", wanted.structure);
    if (wanted.is_array || wanted.cell.is_text()) name += fmt::format("[{}]", wanted.count);
    return name;
}

/// Numbers that are shown in another way are the same numbers.
Cell::Kind meaning_of(Cell::Kind kind) noexcept {
    const bool is_shown = kind == Cell::Kind::hexadecimal || kind == Cell::Kind::bits;
    return is_shown ? Cell::Kind::unsigned_number : kind;
}

bool is(const Map& map, const Type& type, const Wanted& wanted) {
    if (type.structure != Type::kNoStructure) {
        return map.structures()[type.structure].name == wanted.structure &&
               map.layout_of(type.structure) == wanted.layout && type.count == wanted.count &&
               type.is_array == wanted.is_array;
    }
    const Cell &cell = type.cell, &other = wanted.cell;
    return wanted.structure.empty() && meaning_of(cell.kind) == meaning_of(other.kind) &&
           cell.bytes == other.bytes && cell.is_swapped == other.is_swapped &&
           type.count == wanted.count && type.is_array == wanted.is_array;
}

[[noreturn]] void refuse(const std::string& sentence) {
    throw rmem::Error(rmem::Errc::bad_map, sentence);
}

}  // namespace

std::size_t offset_of(const Map& map, std::string_view path, const Wanted& wanted) {
    const Place place = map.at(path);
    if (place.field != nullptr)
        refuse(fmt::format("'{}' is bits of a number; take it for bits", path));
    if (!is(map, place.type, wanted) || map.bytes_of(place.type) != wanted.bytes) {
        const bool is_structure =
            place.type.structure != Type::kNoStructure && !wanted.structure.empty();
        refuse(fmt::format("'{}' is {} in the map, and this program takes it for {}; {}", path,
                           map.name_of(place.type), name_of(wanted),
                           is_structure ? "make its header from this map (`rmem map header`)"
                                        : "correct one of them"));
    }
    return place.offset;
}

std::optional<BitPlace> bit_place_of(const Place& place) noexcept {
    using rmem::kWordBytes;
    constexpr unsigned kWordBits = 8 * kWordBytes;
    const Cell& cell = place.type.cell;
    if (place.field == nullptr || cell.is_swapped) return std::nullopt;
    const std::size_t bit = 8 * (place.offset % kWordBytes) + place.field->first;
    const unsigned bits = place.field->bits;
    if (bit / kWordBits != (bit + bits - 1) / kWordBits) return std::nullopt;
    const std::size_t first = cell.bytes < kWordBytes ? place.offset % kWordBytes : 0;
    const auto shift = static_cast<unsigned>(bit % kWordBits);
    return BitPlace{(place.offset / kWordBytes + bit / kWordBits) * kWordBytes,
                    (bits == kWordBits ? ~0U : (1U << bits) - 1) << shift, shift,
                    rmem::part_of_word(first, std::min<std::size_t>(cell.bytes, kWordBytes))};
}

}  // namespace maps

namespace rmem {

namespace {

[[noreturn]] void refuse_dropped(const Node& node) {
    throw Error(Errc::not_permitted,
                fmt::format("node {} of ring '{}' is no member any more: the others have dropped "
                            "it, or its daemon has ended; open it again",
                            node.id(), node.config().name));
}

}  // namespace

Names::Names(Node& node)
    : node_(&node),
      map_(node.config().link == LinkKind::sim ? maps::map_setting()
                                               : maps::agreed_map(node.ring())) {
    if (map_ == nullptr) {
        maps::refuse(
            fmt::format("ring '{}' has no map; start it with `rmem run --map FILE`, or "
                        "set RMEM_MAP to one",
                        node.config().name));
    }
}

maps::Place Names::find(std::string_view path) const {
    return map_->at(path);
}

void Names::expect(std::uint64_t hash) const {
    if (map_->hash() == hash) return;
    maps::refuse(
        fmt::format("ring '{}' has map {:016x}, and this program was made for {:016x}; "
                    "make its header from this map (`rmem map header {}`)",
                    node_->config().name, map_->hash(), hash, node_->config().name));
}

Bits::Bits(const Names& names, std::string_view path) : node_(&names.node()) {
    const auto place = maps::bit_place_of(names.find(path));
    if (!place) {
        maps::refuse(
            fmt::format("'{}' is no field of a number, or lies in two words, or in a "
                        "number of the other byte order; take the whole number",
                        path));
    }
    at_ = *place;
}

const Bits& Bits::operator=(std::uint32_t value) const {
    for (;;) {
        const WriteResult result = store(value);
        if (result == WriteResult::ok) return *this;
        if (result == WriteResult::dropped) refuse_dropped(*node_);
        node_->poll();
    }
}

void write_with_room(Node& node, std::size_t offset, const void* from, std::size_t bytes) {
    for (;;) {
        const WriteResult result = node.write(offset, from, bytes);
        if (result == WriteResult::ok) return;
        if (result == WriteResult::dropped) refuse_dropped(node);
        node.poll();
    }
}

}  // namespace rmem
