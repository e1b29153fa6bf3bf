// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/named.hpp"

#include "rmem/error.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"
#include "tools/watch/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tools {

namespace {

constexpr std::size_t kMostLeaves = std::size_t{1} << 20;

maps::SharedMap map_for(const rmem::Ring& ring, const std::string& name) {
    if (auto map = maps::map_of(ring)) return map;
    if (auto map = maps::map_setting()) return map;
    throw UsageError(
        fmt::format("'{}' is no offset (256, 0x100, 4K), and ring '{}' has no map that could name "
                    "it; start it with `rmem run --map FILE`, or set RMEM_MAP",
                    name, ring.config().name));
}

Meant at_offset(const GivenPlace& given, std::uint64_t offset, const rmem::Ring& ring) {
    const CellType type = given.type();
    check_alignment(type, maps::name_of(type), offset);
    const std::uint64_t count = given.count.value_or(1);
    const std::uint64_t most = ring.config().bank_bytes();
    Meant meant;
    if (type.is_text() || count > most) {  // what is too much is refused as a range
        const std::uint64_t bytes = type.is_text() ? count : (most + 1) * type.bytes;
        meant.leaves.push_back({"", offset, type, static_cast<std::size_t>(bytes)});
        return meant;
    }
    meant.leaves.push_back({"", offset, type, type.bytes});
    meant.repeats = count;
    return meant;
}

}  // namespace

void GivenPlace::add_to(cli::App& command, const char* whose) {
    add_ring(command, ring)->required();
    command.add_option("OFFSET", place, "Offset in bytes: 256, 0x100 or 4K; or a name of its map")
        ->required();
    command.add_option(
        "--as", as, fmt::format("Type: {} (default: of a name the map's, else u32)", kCellTypes));
    command.add_option("--node", node, whose);
}

void GivenPlace::add_count(cli::App& command, std::uint64_t most) {
    command
        .add_option("COUNT", count,
                    "Number of values (of text: bytes; default: of a name all, else 1)")
        ->check(cli::range(std::uint64_t{1}, most));
}

maps::Cell GivenPlace::type() const {
    const std::string name = as.empty() ? "u32" : as;
    const CellType type = parse_cell_type(name);
    if (!maps::is_path(place)) check_alignment(type, name, size_option("OFFSET", place));
    return type;
}

std::uint64_t Meant::begin() const noexcept {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    for (const maps::Leaf& leaf : leaves) first = std::min(first, leaf.offset);
    return first;
}

std::uint64_t Meant::end() const noexcept {
    std::uint64_t last = 0;
    for (const maps::Leaf& leaf : leaves) last = std::max(last, leaf.offset + leaf.bytes);
    return last + (repeats - 1) * (leaves.empty() ? 0 : leaves[0].bytes);
}

maps::Leaf Meant::leaf(std::uint64_t index) const {
    if (repeats == 1) return leaves[index];
    maps::Leaf one = leaves[0];
    one.offset += index * one.bytes;
    return one;
}

std::string Meant::label(const maps::Leaf& leaf) const {
    return is_named() ? printable(leaf.path) : offset_text(leaf.offset);
}

std::string Meant::text(const maps::Leaf& leaf, std::span<const std::byte> bytes) const {
    std::string text = maps::value_text(leaf, bytes);
    if (leaf.cell.is_text()) text = printable(text);
    return leaf.unit().empty() ? text : fmt::format("{} {}", text, printable(leaf.unit()));
}

nlohmann::json Meant::json(const maps::Leaf& leaf, std::span<const std::byte> bytes) const {
    if (leaf.field != nullptr || leaf.is_scaled()) {
        if (leaf.field != nullptr) return maps::field_value(leaf, bytes);
        return maps::value_of(leaf, bytes);
    }
    return cell_json(leaf.cell, bytes);
}

Meant meant_by(const GivenPlace& given, const rmem::Ring& ring) {
    if (!maps::is_path(given.place))
        return at_offset(given, size_option("OFFSET", given.place), ring);
    const maps::SharedMap map = map_for(ring, given.place);
    const std::uint64_t place = map->at(given.place).offset;
    if (!given.as.empty()) return at_offset(given, place, ring);
    const std::uint64_t most =
        std::min<std::uint64_t>(given.count.value_or(kMostLeaves + 1), kMostLeaves + 1);
    Meant meant{map, maps::leaves_of(*map, given.place, static_cast<std::size_t>(most))};
    if (meant.leaves.size() > kMostLeaves) {
        throw UsageError(fmt::format("'{}' has more than {} values; give COUNT, or a part of it",
                                     given.place, kMostLeaves));
    }
    return meant;
}

std::uint64_t offset_option(const std::string& option, const std::string& text,
                            const rmem::Ring& ring) {
    if (!maps::is_path(text)) return size_option(option, text);
    return map_for(ring, text)->at(text).offset;
}

}  // namespace tools
