// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Maps for the tests: by their text, and random ones.

#include "maps/map_file.hpp"
#include "maps/map_text.hpp"

#include <fmt/format.h>

#include <random>
#include <string>

namespace maps::test {

inline Map map_of_text(const std::string& text) {
    return map_of(text, "rig.toml");
}

/// A rig with each kind of thing in it.
inline constexpr const char* kRig = R"(# the rig
[ring]
nodes = 4
ranks = 5
bytes = 0x10000

[[structure]]
name = "FlightState"
[[structure.member]]
name = "time"
type = "f32"
unit = "s"
[[structure.member]]
name = "position"
type = "f64[3]"
unit = "m"

[[variable]]
name = "aircraft/altitude"   # above the sea
offset = 0x100
type = "f64"
unit = "m"
owner = 0
minimum = -100
maximum = 20e3
rate = 1000

[[variable]]
name = "aircraft/state"
offset = 512
type = "FlightState[2]"
owner = 1

[[variable]]
name = "aircraft/status"
offset = 0x108
type = "u32be"
owner = "rank 2"
fields = { ready = 0, mode = [1, 3] }

[[variable]]
name = "log.name"
offset = 0x110
type = "text[16]"
initial = "none"
description = 'what the "log" is called'
)";

/// Some variables, some with places; by the seed.
inline std::string random_map(unsigned seed, bool has_places) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned end) { return static_cast<unsigned>(random() % end); };
    constexpr const char* kTypes[] = {"u8",  "i16",     "u32be",   "f32",    "f64",
                                      "u64", "text[9]", "bool[3]", "f32[5]", "Pair"};
    std::string text =
        "[ring]\nnodes = 3\n[[structure]]\nname = \"Pair\"\n[[structure.member]]\nname = \"a\"\n"
        "type = \"u16\"\n[[structure.member]]\nname = \"b\"\ntype = \"f64\"\n";
    std::uint64_t offset = 0;
    for (unsigned i = 0, count = 1 + below(40); i < count; ++i) {
        text += fmt::format("[[variable]]\nname = \"group{}/value{}\"\n", below(3), i);
        text += fmt::format("type = \"{}\"\n", kTypes[below(10)]);
        if (below(2) == 0) text += fmt::format("owner = {}\n", below(3));
        if (below(4) == 0) text += fmt::format("rate = {}\n", 50 * below(30));
        if (below(3) == 0) text += fmt::format("scale = {}.5 # of it\n", below(9));
        if (below(5) == 0) text += "unit = \"°C\"\n";
        if (below(5) == 0) text += "description = \"a \\\"quoted\\\" one\"\r\n";
        offset += 8 * (1 + below(6)) + (below(2) == 0 ? 64 : 0);
        if (has_places && below(2) == 0) text += fmt::format("offset = {:#x}\n", offset);
        offset += 64;
    }
    return text;
}

}  // namespace maps::test
