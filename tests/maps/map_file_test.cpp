// SPDX-License-Identifier: Apache-2.0
#include "maps/map_file.hpp"

#include "tests/maps/rigs.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace maps::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

void expect_same(const Map& a, const Map& b) {
    EXPECT_THAT(a.variables(), ElementsAreArray(b.variables().begin(), b.variables().end()));
    EXPECT_THAT(a.structures(), ElementsAreArray(b.structures().begin(), b.structures().end()));
    EXPECT_EQ(a.ring, b.ring);
}

/// Written and read once more; the lines are others then.
void expect_comes_back(const Map& map) {
    const std::string file = file_of(map);
    const Map again = map_of_text(file);
    EXPECT_EQ(file_of(again), file);
    EXPECT_EQ(again.hash(), map.hash());
}

std::string refused(const std::string& text) {
    const auto by = [&](bool is_plain) {
        return rmem::test::refused(rmem::Errc::bad_map,
                                   [&] { static_cast<void>(map_of(text, "rig.toml", is_plain)); });
    };
    by(false);
    return by(true);
}

TEST(MapFiles, say_all_that_a_map_knows) {
    const Map map = map_of_text(kRig);
    EXPECT_EQ(map.ring.nodes, 4U);
    EXPECT_EQ(map.ring.bytes, 0x10000U);
    const Variable& altitude = map.variables()[0];
    EXPECT_EQ(altitude.line, 18U);
    EXPECT_EQ(altitude.minimum, -100);
    EXPECT_EQ(altitude.maximum, 20000);
    EXPECT_EQ(altitude.rate_hz, 1000);
    EXPECT_EQ(altitude.scale, 1);
    EXPECT_EQ(map.variables()[2].owner, (Owner{Owner::Kind::rank, 2}));
    EXPECT_EQ(map.variables()[3].initial, "none");
    EXPECT_EQ(map.variables()[3].description, "what the \"log\" is called");
    EXPECT_EQ(map.structures()[0].bytes, 32U);
    EXPECT_EQ(map.structures()[0].members[1].offset, 8U) << "as in C";
    expect_comes_back(map);
}

TEST(MapFiles, are_read_alike_by_both_ways) {
    expect_same(map_of_text(kRig), map_of(kRig, "rig.toml", false));
    for (unsigned seed = 0; seed < 300; ++seed) {
        const std::string text = random_map(seed, seed % 2 == 0);
        SCOPED_TRACE(text);
        const Map map = map_of_text(text);
        expect_same(map, map_of(text, "rig.toml", false));
        expect_comes_back(map);
        if (HasFailure()) return;
    }
}

TEST(MapFiles, may_have_all_of_toml) {
    const char* const cases[] = {
        "variable = [ { name = \"a\", type = \"f32\" } ]\n",
        "[[variable]]\n\"name\" = \"a\"\ntype = '''f32'''\n",
        "[[variable]]\nname = \"\"\"a\"\"\"\ntype = \"f32\"\n",
        "[[ variable ]]\nname = 'a'\ntype = \"f\\u0033\\u0032\"\n",
        "[[variable]] # one\nname = 'a' # [[variable]]\ntype = \"f32\"\n",
        "\n\n[[variable]]\r\nname = 'a'\r\ntype = \"f32\"",
        "[[variable]]\ntype = \"f32\"\nfields = {}\nname = 'a'",
    };
    for (const char* text : cases) {
        SCOPED_TRACE(text);
        const Map map = map_of_text(text);
        ASSERT_EQ(map.variables().size(), 1U);
        EXPECT_EQ(map.variables()[0].name, "a");
        EXPECT_EQ(map.name_of(map.variables()[0].type), "f32");
    }
}

TEST(MapFiles, have_numbers_as_toml_has_them) {
    const auto scale = [](const std::string& text) {
        return map_of_text("[[variable]]\nname = 'a'\ntype = 'f32'\nscale = " + text + "\n")
            .variables()[0]
            .scale;
    };
    for (const auto& [text, value] : std::vector<std::pair<const char*, double>>{
             {"1", 1},
             {"-2.5", -2.5},
             {"+3", 3},
             {"1_000", 1000},
             {"0x1F", 31},
             {"0b101", 5},
             {"0o17", 15},
             {"1e3", 1000},
             {"2E-1", 0.2},
             {"6.02e+23", 6.02e23},
             {"9223372036854775807", 9223372036854775807.0}})
        EXPECT_EQ(scale(text), value) << text;
    for (const char* text : {"1.", ".5", "01", "1__0", "0x", "1e", "- 1", "inf", "nan", "0", "true",
                             "'1'", "9223372036854775808", "1 2"})
        EXPECT_THAT(refused(std::string("[[variable]]\nname = 'a'\ntype = 'f32'\nscale = ") + text),
                    HasSubstr("rig.toml:4: "))
            << text;
}

TEST(MapFiles, say_where_they_are_wrong_and_what_to_do) {
    const std::pair<std::string, std::string> cases[] = {
        {"[[variable]]\nname = 'a'\n", "rig.toml:1: variable 'a' has no type; add type"},
        {"[[variable]]\ntype = 'f32'\n", "rig.toml:1: a variable has no name"},
        {"[[variable]]\nname = '0x10'\ntype = 'f32'", "rig.toml:2: '0x10' cannot be a name"},
        {"[[variable]]\nname = 'a'\ntype = 'f33'", "rig.toml:3: there is no type 'f33'"},
        {"[[variable]]\nname = 'a'\ntype = 'f32'\nofset = 4",
         "rig.toml:4: there is no 'ofset' (did you mean 'offset'?)"},
        {"[[variable]]\nname = 'a'\ntype = 'f32'\noffset = -4",
         "rig.toml:4: 'offset' is to be a whole number"},
        {"[[variable]]\nname = 'a'\ntype = 'f32'\nowner = 'rank x'",
         "rig.toml:4: 'owner' is to be a node's number"},
        {"[[variable]]\nname = 'a'\nname = 'b'\ntype = 'f32'", "rig.toml:3: "},
        {"[[variable]]\nname = 'a'\ntype = 'f32'\n\n[[variable]]\nname = 'a'\ntype = 'f32'",
         "rig.toml:5: variable 'a' is on line 1 already"},
        {"[ring]\nnodes = 'four'", "rig.toml:2: 'nodes' is to be a whole number"},
        {"[ring]\nbyte_order = 'middle'", "rig.toml:2: 'byte_order' is to be \"big\""},
        {"[rings]\nnodes = 4", "rig.toml:1: 'rings' stands outside"},
        {"nodes = 4", "rig.toml:1: 'nodes' stands outside"},
        {"[[structure]]\nname = 'S'\n", "rig.toml: line 1: structure 'S' has no members"},
        {"[[structure]]\nname = 'f32'\n[[structure.member]]\nname = 'a'\ntype = 'u8'",
         "'f32' cannot be a structure's name"},
        {"[[variable]]\nname = 'a'\ntype = 'f32'\nfields = { b = 1 }",
         "rig.toml:3: 'a' has fields, and is no whole number"},
        {"[[variable]]\nname = 'a'\ntype = 'u8'\nfields = { b = [7, 2] }",
         "field 'b' of 'a' ends behind its 8 bits"},
        {"[[variable]]\nname = \"a\ntype = 'f32'", "rig.toml:2: "},
        {"[[variable]]\nname = 'a\x01'\ntype = 'f32'", "rig.toml:2: "},
        {"[[variable]]\nname = 'a\xff'\ntype = 'f32'", "rig.toml:2: "},
        {"[[variable]]\nname = 'a'\ntype = 'f32'\n[ring]\n[ring]\n", "rig.toml:5: "},
    };
    for (const auto& [text, sentence] : cases)
        EXPECT_THAT(refused(text), HasSubstr(sentence)) << text;
    EXPECT_THAT(rmem::test::refused(rmem::Errc::bad_map,
                                    [] { static_cast<void>(read_map("/nowhere/rig.toml")); }),
                AllOf(HasSubstr("'/nowhere/rig.toml' cannot be read"), HasSubstr("[bad-map]")));
}

}  // namespace
}  // namespace maps::test
