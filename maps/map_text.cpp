// SPDX-License-Identifier: Apache-2.0
#include "maps/map_text.hpp"

#include <fmt/format.h>

#include <bit>
#include <string_view>
#include <vector>

namespace maps {

namespace {

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
            result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            result += c;
        }
    }
    return result + '"';
}

/// So that TOML has it as a real number.
std::string real_text(double value) {
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

std::string other_line(const Other& other) {
    if (other.empty()) return {};
    std::vector<std::string> all;
    for (const auto& [key, text] : other)
        all.push_back(fmt::format("{} = {}", quoted(key), quoted(text)));
    return fmt::format("other = {{ {} }}\n", fmt::join(all, ", "));
}

std::string lines_of(const Map& map, const Variable& one) {
    std::string lines = fmt::format("name = {}\n", quoted(one.name));
    if (one.is_placed()) lines += fmt::format("offset = {:#x}\n", one.offset);
    lines += fmt::format("type = {}\n", quoted(map.name_of(one.type)));
    const auto add_text = [&](const char* key, const std::string& text) {
        if (!text.empty()) lines += fmt::format("{} = {}\n", key, quoted(text));
    };
    const auto add_real = [&](const char* key, double value, double usual) {
        if (value != usual) lines += fmt::format("{} = {}\n", key, real_text(value));
    };
    add_text("unit", one.unit);
    if (one.owner.kind == Owner::Kind::node) lines += fmt::format("owner = {}\n", one.owner.number);
    if (one.owner.kind == Owner::Kind::rank)
        lines += fmt::format("owner = \"rank {}\"\n", one.owner.number);
    add_real("scale", one.scale, 1);
    add_real("bias", one.bias, 0);
    add_real("minimum", one.minimum, -Variable::kUnlimited);
    add_real("maximum", one.maximum, Variable::kUnlimited);
    add_real("rate", one.rate_hz, 0);
    add_text("initial", one.initial);
    add_text("description", one.description);
    if (!one.fields.empty()) {
        std::vector<std::string> fields;
        for (const Field& field : one.fields) {
            fields.push_back(
                field.bits == 1
                    ? fmt::format("{} = {}", quoted(field.name), field.first)
                    : fmt::format("{} = [{}, {}]", quoted(field.name), field.first, field.bits));
        }
        lines += fmt::format("fields = {{ {} }}\n", fmt::join(fields, ", "));
    }
    return lines + other_line(one.other);
}

}  // namespace

std::string file_of(const Map& map) {
    std::string text = "[ring]\n";
    const RingFacts& ring = map.ring;
    if (ring.nodes != 0) text += fmt::format("nodes = {}\n", ring.nodes);
    if (ring.ranks != 0) text += fmt::format("ranks = {}\n", ring.ranks);
    if (ring.bytes != 0) text += fmt::format("bytes = {:#x}\n", ring.bytes);
    if (ring.is_swapped) {
        text += fmt::format("byte_order = \"{}\"\n",
                            std::endian::native == std::endian::little ? "big" : "little");
    }
    if (ring.sends_whole_words) text += "whole_words = true\n";
    if (ring.has_canaries) text += "canaries = true\n";
    text += other_line(ring.other);
    for (const Structure& structure : map.structures()) {
        text += fmt::format("\n[[structure]]\nname = {}\n", quoted(structure.name));
        for (const Variable& member : structure.members)
            text += "\n[[structure.member]]\n" + lines_of(map, member);
    }
    for (const Variable& one : map.variables()) text += "\n[[variable]]\n" + lines_of(map, one);
    return text;
}

}  // namespace maps
