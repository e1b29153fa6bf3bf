// SPDX-License-Identifier: Apache-2.0
// What `rmem map header` writes. That it compiles and runs: tests/consumer.

#include "maps/formats/program.hpp"

#include "maps/pack.hpp"
#include "tests/maps/rigs.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace maps::test {
namespace {

using rmem::Errc;
using rmem::test::refused;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProgramText, has_each_variable_with_its_place_and_type) {
    const Map map = map_of_text(kRig);
    const std::string hash = fmt::format("{:#018x}", map.hash());
    EXPECT_THAT(program_text(map, Language::c, "rig"),
                AllOf(HasSubstr("#define RIG_MAP_HASH UINT64_C(" + hash),
                      HasSubstr("rmem_f64 rig_aircraft_altitude(rmem_node* node) {\n"
                                "    rmem_f64 place = {node, 0x100};"),
                      HasSubstr("rmem_block place = {node, 0x200, 64};"),
                      HasSubstr("struct rig_FlightState {\n    float time; /* time: f32, s */\n"
                                "    unsigned char unused[4];\n    double position[3];")));
    EXPECT_THAT(
        program_text(map, Language::cpp, "rig"),
        AllOf(HasSubstr("kMapHash = " + hash), HasSubstr("Known<double> aircraft_altitude{0x100};"),
              HasSubstr("Known<std::array<FlightState, 2>> aircraft_state{0x200};"),
              HasSubstr("Known<uint32_t, std::endian::big> aircraft_status{0x108};"),
              HasSubstr("Known<std::array<char, 16>> log_name{0x110};")));
    EXPECT_THAT(program_text(map, Language::python, "rig"),
                AllOf(HasSubstr("MAP_HASH = " + hash),
                      HasSubstr("\"aircraft/altitude\": (0x100, \"<f8\", \"m\", \"node 0\")"),
                      HasSubstr("\"aircraft/status\": (0x108, \">u4\""),
                      HasSubstr("(STRUCTURES[\"FlightState\"], 2)")));
}

TEST(ProgramText, has_a_word_of_its_own_for_each_name) {
    const Map map = map_of_text(R"([[variable]]
name = "a/b"
offset = 0
type = "u32"
[[variable]]
name = "a.b"
offset = 4
type = "u32"
[[variable]]
name = "a b_2"
offset = 8
type = "u32"
[[variable]]
name = "class"
offset = 12
type = "u32"
[[variable]]
name = "4 wheels"
offset = 16
type = "u32"
[[variable]]
name = "°"
offset = 20
type = "u32"
description = 'a comment */ that ends, and \ goes on'
)");
    EXPECT_THAT(
        program_text(map, Language::cpp, "my rig"),
        AllOf(HasSubstr("namespace my_rig {"), HasSubstr(" a_b{0x0}"), HasSubstr(" a_b_2{0x4}"),
              HasSubstr(" a_b_2_2{0x8}"), HasSubstr(" the_class{0xc}"),
              HasSubstr(" v4_wheels{0x10}"), HasSubstr(" v{0x14}"), Not(HasSubstr("comment */"))));
}

TEST(ProgramText, takes_no_words_of_the_language_and_names_gaps_beside_members) {
    const Map map = map_of_text(R"([[structure]]
name = "S"
[[structure.member]]
name = "unused"
type = "u8"
[[structure.member]]
name = "co_await"
type = "f64"
[[variable]]
name = "uint8_t"
offset = 0
type = "u8"
[[variable]]
name = "std"
offset = 1
type = "u8"
)");
    EXPECT_THAT(program_text(map, Language::cpp, "rig"),
                AllOf(HasSubstr("uint8_t unused;"), HasSubstr("unsigned char unused_2[7];"),
                      HasSubstr("double the_co_await;"), HasSubstr(" the_uint8_t{0x0}"),
                      HasSubstr(" the_std{0x1}")));
}

TEST(ProgramText, is_refused_for_what_a_program_cannot_say) {
    EXPECT_THAT(refused(Errc::bad_map,
                        [] {
                            static_cast<void>(program_text(
                                map_of_text("[[variable]]\nname = 'a'\ntype = 'u32'\n"),
                                Language::c, "rig"));
                        }),
                HasSubstr("line 1: 'a' has no offset"));
    EXPECT_THAT(refused(Errc::bad_map,
                        [] {
                            static_cast<void>(program_text(map_of_text(R"([[structure]]
name = "S"
[[structure.member]]
name = "a"
type = "u32"
[[structure.member]]
name = "b"
type = "u16"
offset = 2
)"),
                                                           Language::cpp, "rig"));
                        }),
                HasSubstr("'b' overlaps another"));
}

}  // namespace
}  // namespace maps::test
