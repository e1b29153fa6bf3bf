// SPDX-License-Identifier: Apache-2.0
#include "maps/formats/format.hpp"

#include "maps/formats/parts.hpp"
#include "maps/map_file.hpp"
#include "maps/map_text.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace maps {

namespace {

struct Known {
    const char* name;
    Format format;
    Map (*read)(const formats::Source&);
    Exported (*write)(const Map&, unsigned);
};

Map read_own(const formats::Source& source) {
    return map_of(source.text, source.path);
}
Exported write_own(const Map& map, unsigned) {
    return {file_of(map), {}};
}

constexpr std::array<Known, 6> kKnown = {{
    {"map", Format::map, read_own, write_own},
    {"veristand-dma", Format::veristand_blocks, formats::read_veristand_blocks,
     formats::write_veristand_blocks},
    {"veristand-points", Format::veristand_points, formats::read_veristand_points,
     formats::write_veristand_points},
    {"partitions", Format::partitions, formats::read_partitions, formats::write_partitions},
    {"ddf", Format::ddf, formats::read_ddf, formats::write_ddf},
    {"ipc", Format::ipc, formats::read_ipc, formats::write_ipc},
}};

bool is_utf8(std::string_view text) noexcept {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto lead = static_cast<unsigned char>(text[i]);
        if (lead < 0x80) continue;
        const unsigned more = lead >= 0xC2 && lead < 0xE0   ? 1
                              : lead >= 0xE0 && lead < 0xF0 ? 2
                              : lead >= 0xF0 && lead < 0xF5 ? 3
                                                            : 4;
        if (more == 4 || more > text.size() - i - 1) return false;
        std::uint32_t point = lead & (0x3FU >> more);
        for (unsigned k = 1; k <= more; ++k) {
            const auto next = static_cast<unsigned char>(text[i + k]);
            if ((next & 0xC0) != 0x80) return false;
            point = point << 6 | (next & 0x3F);
        }
        const bool is_long = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
        if (is_long || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
        i += more;
    }
    return true;
}

/// Of Windows, as often as not: what is no UTF-8 is Latin-1.
std::string utf8_of(std::string_view text) {
    if (is_utf8(text)) return std::string(text);
    std::string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) {
            result += c;
        } else {
            result += static_cast<char>(0xC0 | byte >> 6);
            result += static_cast<char>(0x80 | (byte & 0x3F));
        }
    }
    return result;
}

const Known& known(Format format) {
    return kKnown[static_cast<std::size_t>(format)];
}

}  // namespace

std::optional<Format> parse_format(std::string_view name) noexcept {
    for (const Known& one : kKnown) {
        if (one.name == name) return one.format;
    }
    return std::nullopt;
}

std::optional<Format> format_of(std::string_view text) noexcept {
    const auto has = [&](const char* word) { return text.find(word) != std::string_view::npos; };
    std::string_view rest = text, first;
    formats::take_line(rest, first);
    if (first.starts_with("BlockName")) return Format::veristand_blocks;
    if (first.starts_with("ChannelName\t")) return Format::veristand_points;
    if (has("<orchestra")) return Format::ddf;
    if (has("ipcType")) return Format::ipc;
    if (has("[[variable]]")) return Format::map;
    if (has(".Type")) return Format::partitions;
    return std::nullopt;
}

Map import_map(Format format, std::string_view text, const std::string& path, unsigned node) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    const std::string readable = utf8_of(text);
    return known(format).read({readable, path, node});
}

Exported export_map(Format format, const Map& map, unsigned node) {
    return known(format).write(map, node);
}

namespace formats {

void Source::refuse(unsigned line, const std::string& sentence) const {
    throw rmem::Error(rmem::Errc::bad_map, fmt::format("{}:{}: {}", path, line, sentence));
}

bool take_line(std::string_view& text, std::string_view& line) noexcept {
    if (text.empty()) return false;
    const std::size_t end = std::min(text.find('\n'), text.size());
    line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
    return true;
}

std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view kAround = " \t\r";
    const std::size_t begin = text.find_first_not_of(kAround);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kAround) + 1 - begin);
}

std::vector<std::string> cells_of(std::string_view line, char separator) {
    std::vector<std::string> cells(1);
    bool is_quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const bool is_mark = line[i] == '"';
        if (is_mark && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
            cells.back() += line[++i];
        } else if (is_mark && (is_quoted || cells.back().empty())) {
            is_quoted = !is_quoted;
        } else if (line[i] == separator && !is_quoted) {
            cells.emplace_back();
        } else {
            cells.back() += line[i];
        }
    }
    for (std::string& cell : cells) cell = std::string(trimmed(cell));
    return cells;
}

std::string cell_text(const std::string& cell, char separator) {
    if (cell.find_first_of(std::string{separator, '"'}) == std::string::npos) return cell;
    std::string text = "\"";
    for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
    return text + '"';
}

std::optional<std::uint64_t> number(std::string_view text, int base) noexcept {
    if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    if (error != std::errc{} || rest != text.data() + text.size() || value > kMost)
        return std::nullopt;
    return value;
}

void Losses::lose(const Variable& one, const std::string& what) {
    exported_.lost.push_back(fmt::format("'{}': {}", one.name, what));
}

void Losses::look_at(const Variable& one, unsigned node, bool has_description, bool has_unit) {
    if (!has_description && !one.description.empty()) lose(one, "its description is lost");
    if (!has_unit && !one.unit.empty()) lose(one, "its unit is lost");
    if (one.scale != 1 || one.bias != 0) lose(one, "its scale and bias are lost");
    if (one.minimum != -Variable::kUnlimited || one.maximum != Variable::kUnlimited)
        lose(one, "its limits are lost");
    if (!one.fields.empty()) lose(one, "its fields are lost");
    const Owner own{Owner::Kind::node, node};
    if (one.owner.kind != Owner::Kind::nobody && one.owner != own)
        lose(one, fmt::format("that it is of {} is lost", text_of(one.owner)));
}

Other other_with(std::initializer_list<std::pair<const char*, std::string>> entries) {
    Other other;
    for (const auto& [key, text] : entries) {
        if (!text.empty()) other.emplace_back(key, text);
    }
    std::sort(other.begin(), other.end());
    return other;
}

}  // namespace formats

}  // namespace maps
