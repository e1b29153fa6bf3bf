// SPDX-License-Identifier: Apache-2.0
#include "maps/pack.hpp"

#include "maps/check.hpp"
#include "tests/maps/rigs.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace maps::test {
namespace {

using ::testing::HasSubstr;

TEST(PackedMaps, have_a_place_for_all_and_no_word_with_two_writers) {
    for (unsigned seed = 0; seed < 500; ++seed) {
        const Map before = map_of_text(random_map(seed, seed % 2 == 0));
        if (has_errors(check(before))) continue;
        Map map = before;
        pack(map);
        std::map<std::uint64_t, Owner> words;
        for (std::size_t i = 0; i < map.variables().size(); ++i) {
            const Variable &one = map.variables()[i], &was = before.variables()[i];
            ASSERT_TRUE(one.is_placed());
            EXPECT_EQ(was.is_placed() ? was.offset : one.offset, one.offset) << "it was moved";
            EXPECT_EQ(was.is_placed() ? 0 : one.offset % map.natural_alignment_of(one.type), 0U);
            for (std::uint64_t at = one.offset / 4;
                 !was.is_placed() && at <= (one.offset + map.bytes_of(one.type) - 1) / 4; ++at) {
                const auto [word, is_new] = words.emplace(at, one.owner);
                EXPECT_TRUE(is_new || word->second == one.owner) << one.name;
            }
        }
        EXPECT_FALSE(has_errors(check(map))) << seed;
        Map again = before;
        pack(again);
        EXPECT_EQ(again.hash(), map.hash()) << "the same each time";
        if (HasFailure()) return;
    }
}

TEST(PackedMaps, give_what_is_written_often_lines_of_its_own) {
    Map map = map_of_text(
        "[[variable]]\nname = 'slow'\ntype = 'f64'\nowner = 0\n"
        "[[variable]]\nname = 'fast'\ntype = 'f64'\nowner = 0\nrate = 1000\n"
        "[[variable]]\nname = 'other'\ntype = 'u8'\nowner = 1\n"
        "[[variable]]\nname = 'with it'\ntype = 'f64'\nowner = 0\nrate = 1000\n");
    pack(map);
    std::set<std::uint64_t> lines;
    for (const char* name : {"slow", "fast", "other"})
        lines.insert(map.variable(name)->offset / 64);
    EXPECT_EQ(lines.size(), 3U);
    EXPECT_EQ(map.variable("with it")->offset, map.variable("fast")->offset + 8);
}

TEST(PackedMaps, say_what_finds_no_room) {
    Map map = map_of_text(
        "[ring]\nbytes = 128\n[[variable]]\nname = 'a'\noffset = 8\ntype = 'f64'\n"
        "[[variable]]\nname = 'b'\ntype = 'f64[16]'\n");
    EXPECT_THAT(rmem::test::refused(rmem::Errc::bad_map, [&] { pack(map); }),
                HasSubstr("line 7: 'b' finds no 128 bytes in a memory of 0x80"));
}

}  // namespace
}  // namespace maps::test
