// SPDX-License-Identifier: Apache-2.0
#include "maps/map.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/hash.hpp"
#include "rmem/base/large_pages.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/base/suggestion.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <system_error>
#include <utility>

namespace maps {

namespace {

constexpr std::uint32_t kMaxCount = 1U << 28;  // elements
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32;

[[noreturn]] void refuse(unsigned line, const std::string& sentence) {
    throw rmem::Error(rmem::Errc::bad_map,
                      line == 0 ? sentence : fmt::format("line {}: {}", line, sentence));
}

/// Of a number that begins there, which it takes off.
std::optional<std::uint32_t> take_count(std::string_view& text) noexcept {
    std::uint32_t count = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    return count;
}

}  // namespace

std::string text_of(const Owner& owner) {
    switch (owner.kind) {
        case Owner::Kind::nobody: return "nobody";
        case Owner::Kind::node: return fmt::format("node {}", owner.number);
        case Owner::Kind::rank: return fmt::format("rank {}", owner.number);
    }
    return {};
}

std::string_view other_of(const Other& other, std::string_view key) noexcept {
    const auto found =
        std::find_if(other.begin(), other.end(), [&](const auto& one) { return one.first == key; });
    return found == other.end() ? std::string_view() : found->second;
}

bool is_name(std::string_view text) noexcept {
    const auto is_refused = [](char c) {
        return static_cast<unsigned char>(c) < ' ' || c == '[' || c == ']' || c == 0x7f;
    };
    if (text.empty() || std::any_of(text.begin(), text.end(), is_refused)) return false;
    // "16", "0x40", "4K", "64Ki": an offset.
    const auto is_of_a_number = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
               c == 'x' || c == 'X' || c == 'K' || c == 'k' || c == 'M' || c == 'G' || c == 'i';
    };
    const bool begins_as_one = text[0] >= '0' && text[0] <= '9';
    return !begins_as_one || !std::all_of(text.begin(), text.end(), is_of_a_number);
}

// ---- Types

std::optional<Type> Map::parse_type(std::string_view text) const {
    Type type;
    if (text.ends_with(']')) {
        const std::size_t open = text.find('[');
        if (open == std::string_view::npos) return std::nullopt;
        std::string_view number = text.substr(open + 1);
        const auto count = take_count(number);
        if (!count || *count == 0 || *count > kMaxCount || number != "]") return std::nullopt;
        type.count = *count;
        type.is_array = true;
        text = text.substr(0, open);
    }
    if (const auto cell = parse_cell(text)) {
        type.cell = *cell;
        const bool says_order = text.ends_with("be") || text.ends_with("le");
        if (!says_order && cell->bytes > 1) type.cell.is_swapped = ring.is_swapped;
        if (cell->is_text() && !std::exchange(type.is_array, false)) return std::nullopt;
        return type;
    }
    const auto found = std::find_if(structures_.begin(), structures_.end(),
                                    [&](const Structure& one) { return one.name == text; });
    if (found == structures_.end()) return std::nullopt;
    type.structure = static_cast<std::uint32_t>(found - structures_.begin());
    return bytes_of(type) > kMaxBytes ? std::nullopt : std::optional(type);
}

std::string Map::name_of(const Type& type) const {
    std::string name = type.structure != Type::kNoStructure ? structures_[type.structure].name
                                                            : maps::name_of(type.cell);
    if (type.is_array || (type.structure == Type::kNoStructure && type.cell.is_text()))
        name += fmt::format("[{}]", type.count);
    return name;
}

std::size_t Map::bytes_of(const Type& type) const noexcept {
    const std::size_t each = type.structure != Type::kNoStructure
                                 ? structures_[type.structure].bytes
                                 : std::size_t{type.cell.bytes};
    return each * type.count;
}

std::size_t Map::alignment_of(const Type& type) const noexcept {
    if (type.structure == Type::kNoStructure) return type.cell.alignment();
    return structures_[type.structure].word_alignment;
}

std::size_t Map::natural_alignment_of(const Type& type) const noexcept {
    return type.structure != Type::kNoStructure ? structures_[type.structure].alignment
                                                : std::size_t{type.cell.bytes};
}

// ---- What is in it

void Map::add(Structure structure) {
    if (!is_name(structure.name) || parse_type(structure.name))
        refuse(structure.line, fmt::format("'{}' cannot be a structure's name, or is one of "
                                           "another type already; give another",
                                           structure.name));
    if (structure.members.empty())
        refuse(structure.line, fmt::format("structure '{}' has no members; add "
                                           "[[structure.member]]",
                                           structure.name));
    std::uint64_t end = 0;
    structure.bytes = 0;
    for (Variable& member : structure.members) {
        const std::size_t alignment = natural_alignment_of(member.type);
        if (!member.is_placed()) member.offset = rmem::round_up(end, alignment);
        end = member.offset + bytes_of(member.type);
        if (end > kMaxBytes)
            refuse(member.line, fmt::format("member '{}' ends at {:#x}, and a structure has at "
                                            "most 4 GiB; place it lower",
                                            member.name, end));
        structure.alignment = std::max(structure.alignment, alignment);
        structure.bytes = std::max<std::size_t>(structure.bytes, end);
    }
    structure.bytes = rmem::round_up(structure.bytes, structure.alignment);
    finish(structure);
    structures_.push_back(std::move(structure));
}

void Map::reserve(std::size_t variables) {
    variables_.reserve(variables);
    rmem::prefer_large_pages(variables_.data(), variables * sizeof(Variable));
}

/// What follows from its members.
void Map::finish(Structure& structure) const {
    rmem::Fnv1a hash;
    hash.add_word(structure.bytes);
    for (const Variable& member : structure.members) {
        const Type& type = member.type;
        structure.word_alignment = std::max(structure.word_alignment, alignment_of(type));
        hash.add(member.name).add_word(member.offset).add_word(type.count).add_word(type.is_array);
        if (type.structure != Type::kNoStructure) {
            const Structure& inner = structures_[type.structure];
            structure.depth = std::max(structure.depth, inner.depth + 1);
            hash.add_word(inner.layout);
        } else {
            hash.add(maps::name_of(type.cell));
        }
    }
    structure.layout = hash.value();
    if (structure.depth > kMostDepth)
        refuse(structure.line, fmt::format("structure '{}' is of structures in one another that "
                                           "are more than {} deep; give it members of its own",
                                           structure.name, kMostDepth));
}

/// Where the name's place stands, or can stand.
std::uint32_t* Map::slot_of(std::string_view name) noexcept {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = std::hash<std::string_view>()(name) & mask;; at = (at + 1) & mask) {
        if (slots_[at] == 0 || variables_[slots_[at] - 1].name == name) return &slots_[at];
    }
}

void Map::grow() {
    constexpr std::size_t kFewest = 64;
    slots_.assign(std::max(kFewest, std::bit_ceil(4 * std::max(variables_.size(),
                                                               variables_.capacity() / 2))),
                  0);
    for (std::uint32_t i = 0; i < variables_.size(); ++i) *slot_of(variables_[i].name) = i + 1;
}

void Map::add(Variable variable) {
    RMEM_CHECK(bytes_of(variable.type) != 0);
    if (2 * variables_.size() >= slots_.size()) grow();
    std::uint32_t* const slot = slot_of(variable.name);
    if (*slot != 0) {
        refuse(variable.line,
               fmt::format("variable '{}' is on line {} already; give one of them another name",
                           variable.name, variables_[*slot - 1].line));
    }
    variables_.push_back(std::move(variable));
    *slot = static_cast<std::uint32_t>(variables_.size());
}

const Variable* Map::variable(std::string_view name) const noexcept {
    if (slots_.empty()) return nullptr;
    const std::uint32_t found = *const_cast<Map*>(this)->slot_of(name);
    return found == 0 ? nullptr : &variables_[found - 1];
}

std::optional<Place> Map::find(std::string_view path) const {
    // The longest beginning that is a variable.
    std::size_t end = path.size();
    const Variable* root = variable(path);
    while (root == nullptr) {
        end = path.find_last_of(".[", end == 0 ? 0 : end - 1);
        if (end == std::string_view::npos || end == 0) return std::nullopt;
        root = variable(path.substr(0, end));
    }
    Place place{root->offset, root->type, root, root, nullptr};
    for (std::string_view rest = path.substr(end); !rest.empty();) {
        const bool is_element = rest[0] == '[';
        rest.remove_prefix(1);
        if (place.field != nullptr) return std::nullopt;
        if (is_element) {
            const auto index = take_count(rest);
            if (!index || *index >= place.type.count || !place.type.is_array ||
                !rest.starts_with(']'))
                return std::nullopt;
            rest.remove_prefix(1);
            place.type.count = 1;
            place.type.is_array = false;
            place.offset += *index * bytes_of(place.type);
            continue;
        }
        const std::string_view name = rest.substr(0, rest.find_first_of(".["));
        rest.remove_prefix(name.size());
        if (place.type.is_array) return std::nullopt;
        const auto has_name = [&](const auto& one) { return one.name == name; };
        if (place.type.structure == Type::kNoStructure) {
            const auto& fields = place.leaf->fields;
            const auto field = std::find_if(fields.begin(), fields.end(), has_name);
            if (field == fields.end()) return std::nullopt;
            place.field = &*field;
            continue;
        }
        const auto& members = structures_[place.type.structure].members;
        const auto member = std::find_if(members.begin(), members.end(), has_name);
        if (member == members.end()) return std::nullopt;
        place.offset += member->offset;
        place.type = member->type;
        place.leaf = &*member;
    }
    return place;
}

Place Map::at(std::string_view path) const {
    if (const auto place = find(path)) return *place;
    refuse(0, fmt::format("there is no '{}' in the map{}; `rmem map show` lists all", path,
                          nearest(path)));
}

std::string Map::nearest(std::string_view path) const {
    std::vector<std::string> names;
    names.reserve(variables_.size());
    for (const Variable& one : variables_) names.push_back(one.name);
    return rmem::did_you_mean(path, names);
}

/// A sum: in which order they stand says nothing.
std::uint64_t Map::hash() const {
    std::uint64_t sum = 0;
    const auto add_one = [&](const Variable& one, std::string_view within) {
        rmem::Fnv1a hash;
        const auto add = [&](std::string_view text) { hash.add(text).add_word(text.size()); };
        add(within);
        add(one.name);
        add(name_of(one.type));
        hash.add_word(one.offset);
        hash.add_word(std::uint64_t{static_cast<unsigned>(one.owner.kind)} << 32 |
                      one.owner.number);
        for (const Field& field : one.fields) {
            add(field.name);
            hash.add_word(std::uint64_t{field.first} << 32 | field.bits);
        }
        sum += hash.value();
    };
    for (const Structure& structure : structures_) {
        for (const Variable& member : structure.members) add_one(member, structure.name);
    }
    for (const Variable& one : variables_) add_one(one, {});
    return sum;
}

}  // namespace maps
