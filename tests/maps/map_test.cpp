// SPDX-License-Identifier: Apache-2.0
#include "maps/map.hpp"

#include "tests/maps/rigs.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace maps::test {
namespace {

using ::testing::HasSubstr;

Place place_of(const Map& map, const char* path) {
    const auto place = map.find(path);
    EXPECT_TRUE(place) << path;
    return place.value_or(Place{});
}

TEST(Maps, are_looked_up_by_names_members_elements_and_fields) {
    const Map map = map_of_text(kRig);
    EXPECT_EQ(map.variables().size(), 4U);
    EXPECT_EQ(place_of(map, "aircraft/altitude").offset, 0x100U);
    EXPECT_EQ(place_of(map, "aircraft/altitude").leaf->unit, "m");
    EXPECT_EQ(place_of(map, "aircraft/state").offset, 512U);
    EXPECT_EQ(map.bytes_of(place_of(map, "aircraft/state").type), 64U);
    EXPECT_EQ(place_of(map, "aircraft/state[1]").offset, 544U);
    const Place element = place_of(map, "aircraft/state[1].position[2]");
    EXPECT_EQ(element.offset, 544U + 8 + 16);
    EXPECT_EQ(map.name_of(element.type), "f64");
    EXPECT_EQ(element.leaf->unit, "m");
    EXPECT_EQ(element.variable->owner, (Owner{Owner::Kind::node, 1}));
    const Place mode = place_of(map, "aircraft/status.mode");
    ASSERT_NE(mode.field, nullptr);
    EXPECT_EQ(mode.field->first, 1U);
    EXPECT_EQ(mode.field->bits, 3U);
    EXPECT_EQ(place_of(map, "log.name").type.count, 16U) << "a name may have dots";
}

/// Structures in one another, each with two of the one before at one place.
std::string nested(unsigned depth) {
    std::string text =
        "[[structure]]\nname = 'S0'\n[[structure.member]]\nname = 'a'\n"
        "type = 'u8'\n";
    for (unsigned i = 1; i < depth; ++i) {
        text += fmt::format("[[structure]]\nname = 'S{}'\n", i);
        for (const char* name : {"a", "b"}) {
            text += fmt::format("[[structure.member]]\nname = '{}'\ntype = 'S{}'\noffset = 0\n",
                                name, i - 1);
        }
    }
    return text + fmt::format("[[variable]]\nname = 'v'\noffset = 0\ntype = 'S{}'\n", depth - 1);
}

TEST(Maps, take_time_by_what_they_have_and_not_by_its_power) {
    const Map map = map_of_text(nested(kMostDepth));
    const Type type = map.variable("v")->type;
    EXPECT_EQ(map.alignment_of(type), 1U);
    EXPECT_NE(map.layout_of(type.structure), map.layout_of(type.structure - 1));
    EXPECT_EQ(map.bytes_of(type), 1U);
}

TEST(Maps, are_refused_with_structures_too_deep_in_one_another) {
    EXPECT_THAT(
        rmem::test::refused(rmem::Errc::bad_map, [] { map_of_text(nested(kMostDepth + 1)); }),
        HasSubstr("more than 32 deep"));
}

TEST(Maps, have_no_byte_order_of_a_byte) {
    const Map map = map_of_text(R"([ring]
byte_order = "big"
[[variable]]
name = "small"
type = "u8"
[[variable]]
name = "on"
type = "bool"
[[variable]]
name = "word"
type = "u16"
)");
    EXPECT_EQ(map.name_of(map.variable("small")->type), "u8");
    EXPECT_EQ(map.name_of(map.variable("on")->type), "bool");
    EXPECT_EQ(map.name_of(map.variable("word")->type), "u16be");
    EXPECT_EQ(name_of(*parse_cell("u8be")), "u8");
}

TEST(Maps, have_nothing_behind_what_ends) {
    const Map map = map_of_text(kRig);
    for (const char* path :
         {"", ".", "[0]", "aircraft", "aircraft/altitude.x", "aircraft/altitude[0]",
          "aircraft/state[2]", "aircraft/state[-1]", "aircraft/state[1", "aircraft/state[1]x",
          "aircraft/state.time", "aircraft/state[0].speed", "aircraft/status.mode.x",
          "aircraft/status[0]", "log", "log.name.x", "aircraft/state[99999999999]"})
        EXPECT_FALSE(map.find(path)) << path;
}

TEST(Maps, name_the_nearest_where_there_is_none) {
    const Map map = map_of_text(kRig);
    EXPECT_EQ(map.nearest("aircraft/altitud"), " (did you mean 'aircraft/altitude'?)");
    EXPECT_EQ(map.nearest("weather"), "");
}

TEST(Maps, keep_the_types_that_they_are_told) {
    const Map map = map_of_text(kRig);
    for (const char* name : {"u8", "i16be", "x64", "bits8", "f32", "f64be", "bool", "bool[7]",
                             "f32[12]", "text[80]", "FlightState", "FlightState[3]"}) {
        const auto type = map.parse_type(name);
        ASSERT_TRUE(type) << name;
        EXPECT_EQ(map.name_of(*type), name);
    }
    for (const char* name :
         {"", "f16", "u33", "f32[]", "f32[0]", "f32[x]", "[3]", "f32[3", "f32[3]]", "f32[1][2]",
          "double", "text", "FlightStat", "f32[999999999]", "FlightState[268435456]", "textbe"})
        EXPECT_FALSE(map.parse_type(name)) << name;
}

TEST(Maps, have_the_byte_order_of_the_ring_where_a_type_says_none) {
    const Map map = map_of_text(
        "[[variable]]\nname = \"a\"\ntype = \"u16\"\n[[variable]]\n"
        "name = \"b\"\ntype = \"u16le\"\n[ring]\nbyte_order = \"big\"\n");
    const auto bytes = value_bytes(map.variable("a")->type.cell, "258");
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->at(0), std::byte{1});
    EXPECT_EQ(value_bytes(map.variable("b")->type.cell, "258")->at(0), std::byte{2});
}

TEST(Maps, refuse_a_name_that_stands_twice) {
    Map map = map_of_text(kRig);
    Variable again = *map.variable("aircraft/status");
    EXPECT_THAT(rmem::test::refused(rmem::Errc::bad_map, [&] { map.add(again); }),
                HasSubstr("'aircraft/status' is on line 34 already"));
}

TEST(Maps, have_the_hash_of_places_types_and_writers_alone) {
    const Map map = map_of_text(kRig);
    const auto with = [&](const char* was, const char* is) {
        std::string text = kRig;
        const std::size_t at = text.find(was);
        EXPECT_NE(at, std::string::npos) << was;
        return map_of_text(text.replace(at, std::strlen(was), is)).hash();
    };
    EXPECT_EQ(with("unit = \"m\"", "unit = \"ft\""), map.hash());
    EXPECT_EQ(with("rate = 1000", "rate = 10"), map.hash());
    EXPECT_NE(with("offset = 0x100", "offset = 0x200"), map.hash());
    EXPECT_NE(with("type = \"f64\"", "type = \"f32\""), map.hash());
    EXPECT_NE(with("owner = 0", "owner = 1"), map.hash());
    EXPECT_NE(with("mode = [1, 3]", "mode = [1, 4]"), map.hash());
    EXPECT_NE(with("type = \"f32\"", "type = \"u32\""), map.hash()) << "of a member";
}

TEST(Maps, have_no_names_that_are_offsets) {
    for (const char* name : {"a", "aircraft/altitude", "X1:ABC-DEF", "2nd engine", "10ch", "°C"})
        EXPECT_TRUE(is_name(name)) << name;
    for (const char* name : {"", "16", "0x40", "4K", "64Ki", "a[0]", "a\nb"})
        EXPECT_FALSE(is_name(name)) << name;
}

}  // namespace
}  // namespace maps::test
