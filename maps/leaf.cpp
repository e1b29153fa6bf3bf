// SPDX-License-Identifier: Apache-2.0
#include "maps/leaf.hpp"

#include "rmem/base/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <system_error>

namespace maps {

namespace {

void add_leaves(const Map& map, const std::string& path, std::uint64_t offset, const Type& type,
                const Variable& said, std::size_t most, std::vector<Leaf>& to) {
    if (to.size() >= most) return;
    const bool is_structure = type.structure != Type::kNoStructure;
    if (type.is_array) {
        Type one = type;
        one.count = 1;
        one.is_array = false;
        const std::size_t bytes = map.bytes_of(one);
        for (std::uint32_t i = 0; i < type.count && to.size() < most; ++i)
            add_leaves(map, fmt::format("{}[{}]", path, i), offset + i * bytes, one, said, most,
                       to);
    } else if (is_structure) {
        for (const Variable& member : map.structures()[type.structure].members) {
            add_leaves(map, path + "." + member.name, offset + member.offset, member.type, member,
                       most, to);
        }
    } else {
        to.push_back({path, offset, type.cell, map.bytes_of(type), &said, nullptr});
        for (const Field& field : said.fields) {
            to.push_back(
                {path + "." + field.name, offset, type.cell, to.back().bytes, &said, &field});
        }
    }
}

/// All bits of a whole number, the lowest first.
std::uint64_t bits_of(const Cell& cell, std::span<const std::byte> bytes) {
    Cell plain = cell;
    plain.kind = Cell::Kind::unsigned_number;
    std::uint64_t all = 0;
    const std::string text = value_text(plain, bytes);
    std::from_chars(text.data(), text.data() + text.size(), all);
    return all;
}

std::uint64_t mask_of(const Field& field) noexcept {
    return field.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << field.bits) - 1;
}

/// As people write one, in decimal with a fraction, or after 0x or 0b.
std::optional<double> number_of(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size()) return value;
    const Cell whole{Cell::Kind::unsigned_number, 8, false};
    const auto bytes = value_bytes(whole, text);
    return bytes ? std::optional(value_of(whole, *bytes)) : std::nullopt;
}

Given given_bits(const Leaf& leaf, const std::string& text, std::span<const std::byte> before) {
    const std::uint64_t mask = mask_of(*leaf.field);
    Cell whole{Cell::Kind::unsigned_number, 8, false};
    const auto value = value_bytes(whole, text == "true" ? "1" : text == "false" ? "0" : text);
    const std::uint64_t wanted = value ? bits_of(whole, *value) : 0;
    if (!value || wanted > mask)
        return {{}, fmt::format("'{}' is no whole number from 0 to {}", text, mask)};
    const std::uint64_t others = bits_of(leaf.cell, before) & ~(mask << leaf.field->first);
    Cell plain = leaf.cell;
    plain.kind = Cell::Kind::unsigned_number;
    return {value_bytes(plain, fmt::format("{}", others | wanted << leaf.field->first)).value(),
            {}};
}

}  // namespace

std::vector<Leaf> leaves_of(const Map& map, std::string_view path, std::size_t most) {
    std::vector<Leaf> all;
    const auto place = map.find(path);
    if (!place || !place->variable->is_placed()) return all;
    if (place->field != nullptr) {
        all.push_back({std::string(path), place->offset, place->type.cell,
                       map.bytes_of(place->type), place->leaf, place->field});
        return all;
    }
    add_leaves(map, std::string(path), place->offset, place->type, *place->leaf, most, all);
    return all;
}

std::uint64_t field_value(const Leaf& leaf, std::span<const std::byte> bytes) {
    RMEM_CHECK(bytes.size() == leaf.bytes && leaf.field != nullptr);
    return bits_of(leaf.cell, bytes) >> leaf.field->first & mask_of(*leaf.field);
}

double value_of(const Leaf& leaf, std::span<const std::byte> bytes) {
    RMEM_CHECK(bytes.size() == leaf.bytes);
    if (leaf.field != nullptr) return static_cast<double>(field_value(leaf, bytes));
    const double stored = value_of(leaf.cell, bytes);
    return leaf.is_scaled() ? stored * leaf.said->scale + leaf.said->bias : stored;
}

std::string value_text(const Leaf& leaf, std::span<const std::byte> bytes) {
    RMEM_CHECK(bytes.size() == leaf.bytes);
    if (leaf.field != nullptr) return fmt::format("{}", field_value(leaf, bytes));
    if (!leaf.is_scaled() || leaf.cell.is_text()) return value_text(leaf.cell, bytes);
    return fmt::format("{}", value_of(leaf, bytes));
}

Given given_value(const Leaf& leaf, const std::string& text, std::span<const std::byte> before) {
    if (leaf.field != nullptr) return given_bits(leaf, text, before);
    auto bytes = value_bytes(leaf.cell, text);
    if (leaf.cell.is_text()) {
        if (bytes->size() > leaf.bytes)
            return {{}, fmt::format("'{}' is no text of less than {} bytes", text, leaf.bytes)};
        bytes->resize(leaf.bytes);
        return {std::move(*bytes), {}};
    }
    std::optional<double> meant;
    if (leaf.is_scaled()) {
        meant = number_of(text);
        if (!meant) return {{}, fmt::format("'{}' is not a number", text)};
        const double stored = (*meant - leaf.said->bias) / leaf.said->scale;
        std::string rounded =
            leaf.cell.is_whole() ? fmt::format("{:.0f}", stored) : fmt::format("{}", stored);
        if (rounded == "-0") rounded = "0";
        bytes = value_bytes(leaf.cell, rounded);
    } else if (bytes) {
        meant = value_of(leaf.cell, *bytes);
    }
    const bool has_limits = leaf.said != nullptr && (std::isfinite(leaf.said->minimum) ||
                                                     std::isfinite(leaf.said->maximum));
    if (meant && has_limits && !(*meant >= leaf.said->minimum && *meant <= leaf.said->maximum)) {
        return {{},
                fmt::format("{} is outside of its limits, {} to {}", text, leaf.said->minimum,
                            leaf.said->maximum)};
    }
    if (!bytes) return {{}, fmt::format("'{}' is not {}", text, wanted_of(leaf.cell))};
    return {std::move(*bytes), {}};
}

// ---- The way back

PlaceIndex::PlaceIndex(const Map& map) : map_(map) {
    const auto variables = map.variables();
    for (std::uint32_t i = 0; i < variables.size(); ++i) {
        if (variables[i].is_placed()) placed_.emplace_back(variables[i].offset, i);
    }
    std::sort(placed_.begin(), placed_.end());
}

const Variable* PlaceIndex::variable_at(std::uint64_t offset) const noexcept {
    const auto after =
        std::upper_bound(placed_.begin(), placed_.end(), std::pair(offset, ~std::uint32_t{0}));
    if (after == placed_.begin()) return nullptr;
    const Variable& one = map_.variables()[std::prev(after)->second];
    return offset - one.offset < map_.bytes_of(one.type) ? &one : nullptr;
}

std::string PlaceIndex::path_at(std::uint64_t offset) const {
    const Variable* const found = variable_at(offset);
    if (found == nullptr) return {};
    std::string path = found->name;
    std::uint64_t within = offset - found->offset;
    for (Type type = found->type;;) {
        if (type.is_array) {
            type.is_array = false;
            type.count = 1;
            const std::size_t bytes = map_.bytes_of(type);
            path += fmt::format("[{}]", within / bytes);
            within %= bytes;
        }
        if (type.structure == Type::kNoStructure) return path;
        const auto& members = map_.structures()[type.structure].members;
        const auto member = std::find_if(members.begin(), members.end(), [&](const auto& one) {
            return within >= one.offset && within - one.offset < map_.bytes_of(one.type);
        });
        if (member == members.end()) return path;
        path += "." + member->name;
        within -= member->offset;
        type = member->type;
    }
}

}  // namespace maps
