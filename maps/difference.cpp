// SPDX-License-Identifier: Apache-2.0
#include "maps/difference.hpp"

#include <fmt/format.h>

#include <utility>

namespace maps {

namespace {

std::string place_text(const Variable& one) {
    return one.is_placed() ? fmt::format("{:#x}", one.offset) : std::string("no place");
}

}  // namespace

std::vector<std::string> differences(const Map& a, const Map& b, std::string_view in_a,
                                     std::string_view in_b) {
    std::vector<std::string> found;
    const auto tell = [&](const Variable& one, const char* what, const auto& left,
                          const auto& right) {
        if (left != right)
            found.push_back(
                fmt::format("'{}': {} is {} {}, {} {}", one.name, what, left, in_a, right, in_b));
    };
    for (const Variable& one : a.variables()) {
        const Variable* const other = b.variable(one.name);
        if (other == nullptr) {
            found.push_back(fmt::format("'{}' is {} alone", one.name, in_a));
            continue;
        }
        tell(one, "its place", place_text(one), place_text(*other));
        tell(one, "its type", a.name_of(one.type), b.name_of(other->type));
        tell(one, "its owner", text_of(one.owner), text_of(other->owner));
        if (one.fields != other->fields)
            found.push_back(fmt::format("'{}' has other fields", one.name));
        tell(one, "its unit", one.unit, other->unit);
        tell(one, "its scale", one.scale, other->scale);
        tell(one, "its bias", one.bias, other->bias);
        tell(one, "its minimum", one.minimum, other->minimum);
        tell(one, "its maximum", one.maximum, other->maximum);
        tell(one, "its rate", one.rate_hz, other->rate_hz);
        tell(one, "its first value", one.initial, other->initial);
        tell(one, "its description", one.description, other->description);
    }
    for (const Variable& one : b.variables()) {
        if (a.variable(one.name) == nullptr)
            found.push_back(fmt::format("'{}' is {} alone", one.name, in_b));
    }
    if (found.empty() && a.hash() != b.hash()) found.emplace_back("a structure's members differ");
    return found;
}

}  // namespace maps
