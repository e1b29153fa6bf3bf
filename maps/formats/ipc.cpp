// SPDX-License-Identifier: Apache-2.0
// LIGO's table of channels between models: a section for each, with ipcType, ipcRate, ipcHost,
// ipcModel, ipcNum and desc. It has numbers in place of offsets: `rmem map pack` gives places.
// Source: the real-time code generator's parser.

#include "maps/formats/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace maps::formats {

Map read_ipc(const Source& source) {
    Map map;
    Variable one;
    const auto end = [&] {
        if (one.line == 0) return;
        std::sort(one.other.begin(), one.other.end());
        map.add(std::move(one));
        one = Variable();
    };
    std::string_view rest = source.text, line;
    for (unsigned at = 1; take_line(rest, line); ++at) {
        const std::string_view text = trimmed(line);
        if (text.empty() || text.starts_with('#')) continue;
        if (text.starts_with('[')) {
            end();
            one.name = std::string(trimmed(text.substr(1, text.find(']') - 1)));
            if (!text.ends_with(']') || !is_name(one.name))
                source.refuse(at, fmt::format("'{}' is no channel's name in brackets", text));
            if (const Variable* first = map.variable(one.name))
                source.refuse(at, fmt::format("'{}' is on line {} already", one.name, first->line));
            one.line = at;
            one.type = *map.parse_type("f64");
            continue;
        }
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos || one.line == 0)
            source.refuse(at, fmt::format("'{}' is no key = value of a channel", text));
        const std::string_view key = trimmed(text.substr(0, equals));
        const std::string_view value = trimmed(text.substr(equals + 1));
        if (key == "ipcRate") {
            const auto rate = number(value);
            if (!rate) source.refuse(at, fmt::format("'{}' is no rate", value));
            one.rate_hz = static_cast<double>(*rate);
        } else if (key == "desc") {
            one.description = std::string(value);
        } else if (std::none_of(one.other.begin(), one.other.end(),
                                [&](const auto& entry) { return entry.first == key; })) {
            one.other.emplace_back(key, value);
        } else {
            source.refuse(at, fmt::format("'{}' has two values of {}", one.name, key));
        }
    }
    end();
    return map;
}

Exported write_ipc(const Map& map, unsigned node) {
    constexpr const char* kKeys[] = {"ipcType", "ipcHost", "ipcModel", "ipcNum"};
    Exported exported;
    Losses losses(exported);
    std::uint64_t next = 0;
    for (const Variable& one : map.variables())
        next = std::max(next, number(other_of(one.other, "ipcNum")).value_or(0) + 1);
    for (const Variable& one : map.variables()) {
        if (map.name_of(one.type) != "f64") {
            losses.lose(one, fmt::format("it is no f64 but {}, and channels are doubles: all of it "
                                         "is lost",
                                         map.name_of(one.type)));
            continue;
        }
        losses.look_at(one, node, true, false);
        if (one.is_placed()) losses.lose(one, "its place is lost");
        if (!one.initial.empty()) losses.lose(one, "its first value is lost");
        if (one.owner == Owner{Owner::Kind::node, node}) losses.lose(one, "its owner is lost");
        exported.text += fmt::format("[{}]\n", one.name);
        for (const char* key : kKeys) {
            std::string value(other_of(one.other, key));
            if (value.empty() && std::string_view(key) == "ipcNum") {
                value = fmt::format("{}", next == 0 ? 0 : next - 1);
                ++next;
            }
            if (value.empty() && std::string_view(key) == "ipcType") value = "RFM0";
            if (!value.empty()) exported.text += fmt::format("{}={}\n", key, value);
            if (std::string_view(key) == "ipcType" && one.rate_hz != 0)
                exported.text += fmt::format("ipcRate={}\n", one.rate_hz);
        }
        for (const auto& [key, value] : one.other) {
            if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
                exported.text += fmt::format("{}={}\n", key, value);
        }
        if (!one.description.empty()) exported.text += fmt::format("desc={}\n", one.description);
        exported.text += "\n";
    }
    return exported;
}

}  // namespace maps::formats
