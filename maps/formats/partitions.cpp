// SPDX-License-Identifier: Apache-2.0
// Partition structures of xPC Target and Simulink Real-Time: assignments of MATLAB,
//
//     % the begin of the aircraft's part
//     out(1).Address = '0x100';
//     out(1).Type = 'single';
//     out(1).Size = '[2 3]';
//     out(1).Alignment = '4';
//
// of which Type alone must be there. Elements follow one another, each at a multiple of its
// alignment, of four bytes without one. The comment above an element is its name. Everything else
// in such a script is passed over; what it computes it must be asked for. Source: the blocks'
// utility functions and scripts of laboratories.

#include "maps/formats/parts.hpp"
#include "rmem/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace maps::formats {

namespace {

constexpr std::uint64_t kAlignment = 4;

constexpr std::array<std::pair<const char*, const char*>, 11> kElementTypes = {
    {{"double", "f64"},
     {"single", "f32"},
     {"int8", "i8"},
     {"uint8", "u8"},
     {"int16", "i16"},
     {"uint16", "u16"},
     {"int32", "i32"},
     {"uint32", "u32"},
     {"int64", "i64"},
     {"uint64", "u64"},
     {"boolean", "bool"}}};

struct Element {
    unsigned line = 0;
    std::string comment, type, size = "1", alignment, address;
};

struct Assignment {
    std::string structure, key, value;
    std::uint64_t index = 1;
};

/// `name(index).Key = value;`; nothing: it is something else.
std::optional<Assignment> assignment(const Source& source, unsigned line, std::string_view text) {
    Assignment found;
    const std::size_t equals = text.find('='), dot = text.rfind('.', equals);
    if (equals == std::string_view::npos || dot == std::string_view::npos) return std::nullopt;
    found.key = std::string(trimmed(text.substr(dot + 1, equals - dot - 1)));
    constexpr std::array<const char*, 4> kKeys = {"Address", "Type", "Size", "Alignment"};
    if (std::find(kKeys.begin(), kKeys.end(), found.key) == kKeys.end()) return std::nullopt;
    std::string_view left = trimmed(text.substr(0, dot));
    if (const std::size_t open = left.find('('); open != std::string_view::npos) {
        const auto index = number(left.substr(open + 1, left.size() - open - 2));
        if (!left.ends_with(')') || !index || *index == 0)
            source.refuse(line, fmt::format("'{}' is to be an element's number, from 1", left));
        found.index = *index;
        left = left.substr(0, open);
    }
    const auto is_of_a_name = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_' || c == '.';
    };
    if (left.empty() || !is_name(left) || !std::all_of(left.begin(), left.end(), is_of_a_name))
        source.refuse(line, fmt::format("'{}' is no name of a structure", left));
    found.structure = std::string(left);
    std::string_view right = trimmed(text.substr(equals + 1));
    right = trimmed(right.substr(0, right.find(';')));
    const bool is_quoted =
        right.size() >= 2 && (right[0] == '\'' || right[0] == '"') && right.back() == right[0];
    if (is_quoted) right = trimmed(right.substr(1, right.size() - 2));
    const bool is_plain = !right.empty() && right.find('\'') == std::string_view::npos &&
                          (is_quoted || number(right));
    if (!is_plain)
        source.refuse(line, fmt::format("{} is computed ({}); write what comes out, in quotation "
                                        "marks",
                                        found.key, right));
    found.value = std::string(right);
    return found;
}

/// The product of "2 3", also in brackets.
std::optional<std::uint64_t> elements(std::string_view size) {
    if (size.starts_with('[') && size.ends_with(']')) size = size.substr(1, size.size() - 2);
    std::uint64_t all = 1;
    bool any = false;
    for (const std::string& each : cells_of(size, ' ')) {
        if (each.empty()) continue;
        const auto count = number(each);
        constexpr std::uint64_t kMost = 1U << 28;
        if (!count || *count == 0 || *count > kMost / all) return std::nullopt;
        all *= *count;
        any = true;
    }
    return any ? std::optional(all) : std::nullopt;
}

Variable variable_of(const Source& source, const std::string& structure, std::uint64_t index,
                     const Element& element, std::uint64_t& end, Map& map) {
    const unsigned line = element.line;
    const auto* const type =
        std::find_if(kElementTypes.begin(), kElementTypes.end(),
                     [&](const auto& one) { return element.type == one.first; });
    if (type == kElementTypes.end())
        source.refuse(line, fmt::format("{}({}) has the type '{}', which is none of MATLAB's; give "
                                        "one such as 'single'",
                                        structure, index, element.type));
    const auto count = elements(element.size);
    if (!count)
        source.refuse(line,
                      fmt::format("'{}' is no size; give such as '8' or '[2 3]'", element.size));
    const auto alignment =
        element.alignment.empty() ? std::optional(kAlignment) : number(element.alignment);
    if (!alignment || *alignment == 0)
        source.refuse(line, fmt::format("'{}' is no alignment", element.alignment));
    Variable one;
    one.line = line;
    one.name = fmt::format("{}/{}", structure, element.comment);
    if (element.comment.empty() || !is_name(one.name) || map.variable(one.name) != nullptr)
        one.name = fmt::format("{}/({})", structure, index);
    one.type = *map.parse_type(*count == 1 ? std::string(type->second)
                                           : fmt::format("{}[{}]", type->second, *count));
    one.offset = rmem::round_up(end, *alignment);
    if (!element.address.empty()) {
        const auto address = number(element.address, element.address.starts_with("0x") ? 16 : 10);
        if (!address)
            source.refuse(line,
                          fmt::format("'{}' is no address; give such as '0x100'", element.address));
        one.offset = *address;
    }
    end = one.offset + map.bytes_of(one.type);
    const bool is_usual_size = element.size == fmt::format("{}", *count);
    one.other = other_with({{"partition", structure},
                            {"address", element.address},
                            {"alignment", element.alignment},
                            {"size", is_usual_size ? std::string() : element.size}});
    return one;
}

}  // namespace

Map read_partitions(const Source& source) {
    std::vector<std::string> order;
    std::map<std::string, std::map<std::uint64_t, Element>> structures;
    std::string_view rest = source.text, line;
    std::string comment;
    for (unsigned number = 1; take_line(rest, line); ++number) {
        const std::string_view text = trimmed(line);
        if (text.starts_with('%')) {
            comment = std::string(
                trimmed(text.substr(std::min(text.find_first_not_of('%'), text.size()))));
            continue;
        }
        const auto found = assignment(source, number, text);
        if (found) {
            if (!structures.contains(found->structure)) order.push_back(found->structure);
            const auto [element, is_new] = structures[found->structure].try_emplace(found->index);
            if (is_new) {
                element->second.line = number;
                element->second.comment = comment;
            }
            (found->key == "Type"      ? element->second.type
             : found->key == "Size"    ? element->second.size
             : found->key == "Address" ? element->second.address
                                       : element->second.alignment) = found->value;
        }
        comment.clear();
    }
    Map map;
    for (const std::string& structure : order) {
        std::uint64_t end = 0;
        for (const auto& [index, element] : structures[structure])
            map.add(variable_of(source, structure, index, element, end, map));
    }
    return map;
}

Exported write_partitions(const Map& map, unsigned node) {
    struct Written {
        std::string text;
        std::uint64_t index = 0, end = 0;
    };
    Exported exported;
    Losses losses(exported);
    std::vector<std::string> order;
    std::map<std::string, Written> structures;
    for (const Variable& one : map.variables()) {
        Cell cell = one.type.cell;
        if (cell.is_swapped) losses.lose(one, "its byte order is lost");
        cell.is_swapped = false;
        if (cell.kind == Cell::Kind::bits || cell.kind == Cell::Kind::hexadecimal) {
            losses.lose(one, fmt::format("that it is shown as {} is lost", map.name_of(one.type)));
            cell.kind = Cell::Kind::unsigned_number;
        }
        const auto* const type =
            std::find_if(kElementTypes.begin(), kElementTypes.end(),
                         [&](const auto& kind) { return name_of(cell) == kind.second; });
        if (one.type.structure != Type::kNoStructure || type == kElementTypes.end() ||
            !one.is_placed()) {
            losses.lose(one, "it has no type of MATLAB's, or no place: all of it is lost");
            continue;
        }
        losses.look_at(one, node, false, false);
        if (!one.initial.empty()) losses.lose(one, "its first value is lost");
        if (one.rate_hz != 0) losses.lose(one, "its rate is lost");
        if (one.owner.kind == Owner::Kind::node && one.owner.number == node)
            losses.lose(one, "its owner is lost");
        std::string structure(other_of(one.other, "partition"));
        if (structure.empty()) structure = "partition";
        if (!structures.contains(structure)) order.push_back(structure);
        Written& to = structures[structure];
        const std::string prefix = structure + "/";
        std::string name = one.name.starts_with(prefix) ? one.name.substr(prefix.size()) : one.name;
        const std::string element = fmt::format("{}({})", structure, ++to.index);
        if (name != fmt::format("({})", to.index)) to.text += fmt::format("% {}\n", name);
        const std::string alignment(other_of(one.other, "alignment"));
        const std::uint64_t step = number(alignment).value_or(kAlignment);
        std::string address(other_of(one.other, "address"));
        if (address.empty() &&
            rmem::round_up(to.end, std::max<std::uint64_t>(step, 1)) != one.offset)
            address = fmt::format("{:#x}", one.offset);
        if (!address.empty()) to.text += fmt::format("{}.Address = '{}';\n", element, address);
        to.text += fmt::format("{}.Type = '{}';\n", element, type->first);
        std::string size(other_of(one.other, "size"));
        if (size.empty()) size = fmt::format("{}", one.type.count);
        to.text += fmt::format("{}.Size = '{}';\n", element, size);
        if (!alignment.empty())
            to.text += fmt::format("{}.Alignment = '{}';\n", element, alignment);
        to.end = one.offset + map.bytes_of(one.type);
    }
    for (const std::string& structure : order) exported.text += structures[structure].text;
    return exported;
}

}  // namespace maps::formats
