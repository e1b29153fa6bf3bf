// SPDX-License-Identifier: Apache-2.0
// NI VeriStand's two tables of reflective memory: of DMA blocks, by columns that a comma divides
// (places are counted in doubles), and of points, by tabulators (places are bytes, in hexadecimal).
// All values are doubles. Source: the custom devices' readme files and examples.

#include "maps/formats/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

namespace maps::formats {

namespace {

constexpr std::uint64_t kDouble = 8;
constexpr const char* kBlockHeading =
    "BlockName, Block Offset (Doubles), Block Direction (Read or Write), Channel Relative Offset "
    "(Doubles), Channel Name, Channel Unit, Channel Default Value (for Write Channels Only)";
constexpr const char* kPointHeading =
    "ChannelName\tDefaultValue\tUnit\tAddress\tDirection\tDescription";

Owner owner_by(const Source& source, unsigned line, const std::string& direction) {
    if (direction == "Write") return {Owner::Kind::node, source.node};
    if (direction == "Read") return {};
    source.refuse(line, fmt::format("the direction '{}' is neither Read nor Write", direction));
}

const char* direction_of(const Variable& one, unsigned node) {
    return one.owner == Owner{Owner::Kind::node, node} ? "Write" : "Read";
}

/// A row for each line behind the heading.
template <class Row>
void for_each_row(const Source& source, char separator, std::size_t columns, Row row) {
    std::string_view rest = source.text, line;
    unsigned number = 0;
    while (take_line(rest, line)) {
        if (++number == 1 || trimmed(line).empty()) continue;
        std::vector<std::string> cells = cells_of(line, separator);
        // What is empty at the end may have been left out.
        cells.resize(std::max(cells.size(), columns));
        if (cells.size() != columns)
            source.refuse(number, fmt::format("the row has {} cells, and the table {} columns",
                                              cells.size(), columns));
        row(number, cells);
    }
}

Variable channel(const Source& source, unsigned line, const std::string& name, Map& map) {
    if (!is_name(name)) source.refuse(line, fmt::format("'{}' cannot be a name", name));
    if (const Variable* first = map.variable(name))
        source.refuse(line, fmt::format("'{}' is on line {} already", name, first->line));
    Variable one;
    one.name = name;
    one.line = line;
    one.type = *map.parse_type("f64");
    return one;
}

/// Doubles at multiples of eight; of an array each.
bool can_be_channel(const Map& map, const Variable& one, Losses& losses) {
    const bool is_double = map.name_of(one.type) == "f64";
    if (!is_double) {
        losses.lose(one, fmt::format("it is no f64 but {}, and the table has doubles alone: all of "
                                     "it is lost",
                                     map.name_of(one.type)));
    } else if (!one.is_placed() || one.offset % kDouble != 0) {
        losses.lose(one, "it has no place at a multiple of 8: all of it is lost");
    }
    return is_double && one.is_placed() && one.offset % kDouble == 0;
}

void look_at_rate(const Variable& one, Losses& losses) {
    if (one.rate_hz != 0) losses.lose(one, "its rate is lost");
}

}  // namespace

Map read_veristand_blocks(const Source& source) {
    constexpr std::size_t kColumns = 7;
    Map map;
    for_each_row(source, ',', kColumns, [&](unsigned line, const std::vector<std::string>& cells) {
        const auto block = number(cells[1]), place = number(cells[3]);
        if (!block || !place)
            source.refuse(line, fmt::format("'{}' and '{}' are to be whole numbers of doubles",
                                            cells[1], cells[3]));
        Variable one = channel(source, line, cells[4], map);
        one.offset = (*block + *place) * kDouble;
        one.owner = owner_by(source, line, cells[2]);
        one.unit = cells[5];
        one.initial = cells[6];
        one.other = other_with({{"block", cells[0]}, {"block_offset", cells[1]}});
        map.add(std::move(one));
    });
    return map;
}

Map read_veristand_points(const Source& source) {
    constexpr std::size_t kColumns = 6;
    constexpr int kHexadecimal = 16;
    Map map;
    for_each_row(source, '\t', kColumns, [&](unsigned line, const std::vector<std::string>& cells) {
        const auto place = number(cells[3], kHexadecimal);
        if (!place)
            source.refuse(line, fmt::format("'{}' is to be a hexadecimal address", cells[3]));
        Variable one = channel(source, line, cells[0], map);
        one.offset = *place;
        one.owner = owner_by(source, line, cells[4]);
        one.unit = cells[2];
        one.initial = cells[1];
        one.description = cells[5];
        map.add(std::move(one));
    });
    return map;
}

/// Blocks as they were, and where there were none one for each run of a direction.
Exported write_veristand_blocks(const Map& map, unsigned node) {
    Exported exported;
    Losses losses(exported);
    exported.text = kBlockHeading;
    exported.text += '\n';
    std::uint64_t end = Variable::kUnplaced, own_block = 0;
    unsigned own_blocks = 0;
    std::string last_direction;
    for (const Variable& one : map.variables()) {
        if (!can_be_channel(map, one, losses)) continue;
        losses.look_at(one, node, false);
        look_at_rate(one, losses);
        const std::string direction = direction_of(one, node);
        std::string block(other_of(one.other, "block"));
        auto begin = number(other_of(one.other, "block_offset"));
        if (block.empty() || !begin || *begin * kDouble > one.offset) {
            if (one.offset != end || direction != last_direction) {
                ++own_blocks;
                own_block = one.offset / kDouble;
            }
            begin = own_block;
            block = fmt::format("Block {}", own_blocks);
            end = one.offset + kDouble;
        } else {
            end = Variable::kUnplaced;
        }
        last_direction = direction;
        exported.text +=
            fmt::format("{},{},{},{},{},{},{}\n", cell_text(block, ','), *begin, direction,
                        one.offset / kDouble - *begin, cell_text(one.name, ','),
                        cell_text(one.unit, ','), cell_text(one.initial, ','));
    }
    return exported;
}

Exported write_veristand_points(const Map& map, unsigned node) {
    Exported exported;
    Losses losses(exported);
    exported.text = kPointHeading;
    exported.text += '\n';
    for (const Variable& one : map.variables()) {
        if (!can_be_channel(map, one, losses)) continue;
        losses.look_at(one, node, true);
        look_at_rate(one, losses);
        exported.text +=
            fmt::format("{}\t{}\t{}\t{:X}\t{}\t{}\n", cell_text(one.name, '\t'),
                        cell_text(one.initial, '\t'), cell_text(one.unit, '\t'), one.offset,
                        direction_of(one, node), cell_text(one.description, '\t'));
    }
    return exported;
}

}  // namespace maps::formats
