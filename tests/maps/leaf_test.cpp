// SPDX-License-Identifier: Apache-2.0
#include "maps/leaf.hpp"

#include "maps/pack.hpp"
#include "tests/maps/rigs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace maps::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kScaled = R"([[variable]]
name = "temperature"
offset = 0
type = "i16"
scale = 0.1
bias = -50
minimum = -40
maximum = 120
unit = "degC"
[[variable]]
name = "status"
offset = 4
type = "u16be"
fields = { ready = 0, mode = [1, 3] }
[[variable]]
name = "title"
offset = 8
type = "text[6]"
)";

std::vector<std::string> paths_of(const std::vector<Leaf>& leaves) {
    std::vector<std::string> paths;
    for (const Leaf& leaf : leaves) paths.push_back(leaf.path);
    return paths;
}

Leaf leaf_of(const Map& map, const char* path) {
    const auto leaves = leaves_of(map, path);
    EXPECT_FALSE(leaves.empty()) << path;
    return leaves.empty() ? Leaf{} : leaves.front();
}

std::string shown(const Map& map, const char* path, std::vector<std::byte> bytes) {
    return value_text(leaf_of(map, path), bytes);
}

TEST(Leaves, are_what_a_variable_comes_down_to) {
    const Map map = map_of_text(kRig);
    EXPECT_THAT(paths_of(leaves_of(map, "aircraft/altitude")), ElementsAre("aircraft/altitude"));
    EXPECT_THAT(paths_of(leaves_of(map, "aircraft/state[1]")),
                ElementsAre("aircraft/state[1].time", "aircraft/state[1].position[0]",
                            "aircraft/state[1].position[1]", "aircraft/state[1].position[2]"));
    EXPECT_EQ(leaves_of(map, "aircraft/state")[5].offset, 544U + 8);
    EXPECT_EQ(leaves_of(map, "aircraft/state")[5].unit(), "m");
    EXPECT_THAT(paths_of(leaves_of(map, "aircraft/state", 2)),
                ElementsAre("aircraft/state[0].time", "aircraft/state[0].position[0]"));
    EXPECT_THAT(paths_of(leaves_of(map, "aircraft/status")),
                ElementsAre("aircraft/status", "aircraft/status.ready", "aircraft/status.mode"));
    EXPECT_THAT(leaves_of(map, "aircraft/statu"), IsEmpty());
    EXPECT_THAT(leaves_of(map_of_text("[[variable]]\nname = 'a'\ntype = 'u8'\n"), "a"), IsEmpty())
        << "it has no place";
}

TEST(Leaves, show_what_is_meant) {
    const Map map = map_of_text(kScaled);
    EXPECT_EQ(shown(map, "temperature", {std::byte{0xcb}, std::byte{0x02}}), "21.5");
    EXPECT_EQ(shown(map, "temperature", {std::byte{0xff}, std::byte{0xff}}), "-50.1");
    EXPECT_EQ(leaf_of(map, "temperature").unit(), "degC");
    EXPECT_EQ(shown(map, "status", {std::byte{0}, std::byte{0x0b}}), "11");
    EXPECT_EQ(shown(map, "status.ready", {std::byte{0}, std::byte{0x0b}}), "1");
    EXPECT_EQ(shown(map, "status.mode", {std::byte{0}, std::byte{0x0b}}), "5");
    EXPECT_EQ(shown(map, "title",
                    {std::byte{'r'}, std::byte{'i'}, std::byte{}, std::byte{'x'}, std::byte{},
                     std::byte{}}),
              "ri");
}

TEST(Leaves, take_what_people_mean) {
    const Map map = map_of_text(kScaled);
    const auto given = [&](const char* path, const char* text, std::vector<std::byte> before) {
        return given_value(leaf_of(map, path), text, before);
    };
    const std::vector<std::byte> two(2), none{std::byte{}, std::byte{0x0b}};
    EXPECT_THAT(given("temperature", "21.5", two).bytes,
                ElementsAre(std::byte{0xcb}, std::byte{2}));
    EXPECT_THAT(given("temperature", "21.46", two).bytes,
                ElementsAre(std::byte{0xcb}, std::byte{2}))
        << "the nearest";
    EXPECT_THAT(given("temperature", "121", two).refused, HasSubstr("limits, -40 to 120"));
    EXPECT_THAT(given("temperature", "warm", two).refused, HasSubstr("not a number"));
    EXPECT_THAT(given("status.mode", "2", none).bytes, ElementsAre(std::byte{}, std::byte{0x05}));
    EXPECT_THAT(given("status.ready", "false", none).bytes,
                ElementsAre(std::byte{}, std::byte{0x0a}));
    EXPECT_THAT(given("status.mode", "8", none).refused, HasSubstr("0 to 7"));
    EXPECT_THAT(given("status.mode", "-1", none).refused, HasSubstr("0 to 7"));
    EXPECT_THAT(given("status", "65536", two).refused, HasSubstr("whole number"));
    EXPECT_EQ(given("title", "rig", std::vector<std::byte>(6)).bytes.size(), 6U);
    EXPECT_THAT(given("title", "sixsix", std::vector<std::byte>(6)).refused,
                HasSubstr("less than 6"));
}

TEST(Leaves, have_limits_however_a_number_is_written) {
    const Map map = map_of_text(R"([[variable]]
name = "word"
offset = 0
type = "u16"
maximum = 100
[[variable]]
name = "real"
offset = 4
type = "f32"
minimum = 0
[[variable]]
name = "scaled"
offset = 8
type = "u16"
scale = 0.5
)");
    const std::vector<std::byte> two(2), four(4);
    EXPECT_THAT(given_value(leaf_of(map, "word"), "0x7fff", two).refused, HasSubstr("limits"));
    EXPECT_THAT(given_value(leaf_of(map, "word"), "0b1100101", two).refused, HasSubstr("limits"));
    EXPECT_EQ(given_value(leaf_of(map, "word"), "0x64", two).refused, "");
    EXPECT_THAT(given_value(leaf_of(map, "real"), "nan", four).refused, HasSubstr("limits"));
    EXPECT_THAT(given_value(leaf_of(map, "scaled"), "0x10", two).bytes,
                ElementsAre(std::byte{32}, std::byte{}));
}

TEST(Leaves, have_all_bits_of_a_field) {
    const Map map = map_of_text(
        "[[variable]]\nname = 'q'\noffset = 0\ntype = 'u64'\nfields = { all = [0, 64] }\n");
    const std::vector<std::byte> ones(8, std::byte{0xff});
    EXPECT_EQ(field_value(leaf_of(map, "q.all"), ones), ~std::uint64_t{0});
    EXPECT_EQ(value_text(leaf_of(map, "q.all"), ones), "18446744073709551615");
    EXPECT_EQ(given_value(leaf_of(map, "q.all"), "18446744073709551615", ones).bytes, ones);
}

TEST(Leaves, show_a_value_that_they_take_for_each_place_of_random_maps) {
    for (unsigned seed = 1; seed <= 60; ++seed) {
        Map map = map_of_text(random_map(seed, true));
        pack(map);
        for (const Variable& one : map.variables()) {
            for (const Leaf& leaf : leaves_of(map, one.name)) {
                std::vector<std::byte> bytes(leaf.bytes, std::byte{1});
                if (leaf.cell.is_text()) bytes.back() = std::byte{};
                const std::string text = value_text(leaf, bytes);
                if (leaf.cell.is_text()) continue;
                const Given back = given_value(leaf, text, bytes);
                ASSERT_EQ(back.refused, "") << seed << ' ' << leaf.path;
                EXPECT_NEAR(value_of(leaf, back.bytes), value_of(leaf, bytes),
                            1e-6 * std::abs(value_of(leaf, bytes)))
                    << seed << ' ' << leaf.path;
            }
        }
    }
}

// ---- The way back

TEST(Places, are_found_by_any_of_their_bytes) {
    const Map map = map_of_text(kRig);
    const PlaceIndex index(map);
    EXPECT_EQ(index.path_at(0x100), "aircraft/altitude");
    EXPECT_EQ(index.path_at(0x107), "aircraft/altitude");
    EXPECT_EQ(index.path_at(0x108), "aircraft/status");
    EXPECT_EQ(index.path_at(544 + 8 + 17), "aircraft/state[1].position[2]");
    EXPECT_EQ(index.path_at(544 + 5), "aircraft/state[1]") << "a hole in it";
    EXPECT_EQ(index.path_at(0xff), "");
    EXPECT_EQ(index.path_at(0x120), "");
    EXPECT_EQ(index.path_at(~std::uint64_t{0}), "");
}

TEST(Places, lead_back_to_the_path_that_led_there) {
    for (unsigned seed = 1; seed <= 60; ++seed) {
        Map map = map_of_text(random_map(seed, true));
        pack(map);
        const PlaceIndex index(map);
        for (const Variable& one : map.variables()) {
            for (const Leaf& leaf : leaves_of(map, one.name)) {
                EXPECT_EQ(index.path_at(leaf.offset), leaf.path) << seed;
                EXPECT_EQ(index.path_at(leaf.offset + leaf.bytes - 1), leaf.path) << seed;
            }
        }
    }
}

}  // namespace
}  // namespace maps::test
