// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/cells.hpp"

#include "tools/usage.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tools {
namespace {

std::vector<unsigned> stored(const std::string& type, const std::string& value) {
    std::vector<unsigned> bytes;
    for (const auto byte : parse_cell(parse_cell_type(type), value))
        bytes.push_back(std::to_integer<unsigned>(byte));
    return bytes;
}

std::string shown_again(const std::string& type, const std::string& value) {
    const CellType cell = parse_cell_type(type);
    return cell_text(cell, parse_cell(cell, value));
}

TEST(Cells, come_back_as_they_were_given) {
    const std::vector<std::pair<const char*, const char*>> cases = {
        {"u8", "255"},
        {"i8", "-128"},
        {"x8", "0x0f"},
        {"bits8", "0b10000001"},
        {"u16", "65535"},
        {"i16", "-32768"},
        {"x16", "0x0abc"},
        {"bits16", "0b0000000000000001"},
        {"u32", "4294967295"},
        {"i32", "-2147483648"},
        {"x32", "0xdeadbeef"},
        {"bits", "0b10000000000000000000000000000000"},
        {"u64", "18446744073709551615"},
        {"i64", "-9223372036854775808"},
        {"i64", "9223372036854775807"},
        {"x64", "0x0123456789abcdef"},
        {"f32", "1.5"},
        {"f64", "-1e+300"},
        {"text", "good day"},
    };
    for (const auto& [type, value] : cases) {
        EXPECT_EQ(shown_again(type, value), value) << type;
        if (type == std::string("text")) continue;
        for (const char* order : {"be", "le"}) {
            EXPECT_EQ(shown_again(std::string(type) + order, value), value) << type << order;
        }
    }
}

TEST(Cells, lie_in_the_byte_order_that_is_asked_for) {
    EXPECT_EQ(stored("u32be", "0x01020304"), (std::vector<unsigned>{1, 2, 3, 4}));
    EXPECT_EQ(stored("u32le", "0x01020304"), (std::vector<unsigned>{4, 3, 2, 1}));
    EXPECT_EQ(stored("i16be", "-2"), (std::vector<unsigned>{0xff, 0xfe}));
    EXPECT_EQ(stored("f64be", "1"), (std::vector<unsigned>{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(stored("bits16be", "0b1000000000000001"), (std::vector<unsigned>{0x80, 0x01}));
    const char* own = std::endian::native == std::endian::little ? "u64le" : "u64be";
    EXPECT_EQ(stored("u64", "1"), stored(own, "1"));
}

TEST(Cells, are_numbers_in_json_unless_they_are_patterns) {
    const auto json = [](const char* type, const char* value) {
        const CellType cell = parse_cell_type(type);
        return cell_json(cell, parse_cell(cell, value));
    };
    EXPECT_EQ(json("u64be", "18446744073709551615"), 18446744073709551615ULL);
    EXPECT_EQ(json("i8", "-1"), -1);
    EXPECT_EQ(json("x16", "0xff"), "0x00ff");
    EXPECT_EQ(json("bits8", "1"), "0b00000001");
    EXPECT_EQ(json("f32be", "0.5"), 0.5);
}

TEST(Cells, values_that_do_not_fit_their_type_are_refused) {
    const std::vector<std::pair<const char*, const char*>> cases = {
        {"u8", "256"},
        {"u8", "-1"},
        {"i8", "128"},
        {"i8", "-129"},
        {"u16", "1.5"},
        {"u64", "18446744073709551616"},
        {"i64", "9223372036854775808"},
        {"i64", "-9223372036854775809"},
        {"x32", "0x"},
        {"x32", "0x1ffffffff"},
        {"bits", "0b2"},
        {"f32", "1e99"},
        {"f64", "one"},
        {"u32", ""},
    };
    for (const auto& [type, value] : cases) {
        EXPECT_THROW(stored(type, value), UsageError) << type << ' ' << value;
    }
}

TEST(Cells, values_of_no_type_are_refused) {
    for (const char* name : {"", "u", "u24", "u128", "f16", "f8", "textbe", "be", "int", "U32"}) {
        EXPECT_THROW(parse_cell_type(name), UsageError) << name;
    }
}

TEST(Cells, stand_at_multiples_of_their_size_and_at_most_of_the_word) {
    const auto fits = [](const char* type, std::uint64_t offset) {
        try {
            check_alignment(parse_cell_type(type), type, offset);
            return true;
        } catch (const UsageError&) {
            return false;
        }
    };
    EXPECT_TRUE(fits("u8", 3));
    EXPECT_TRUE(fits("text", 3));
    EXPECT_TRUE(fits("u16", 2));
    EXPECT_FALSE(fits("u16be", 3));
    EXPECT_FALSE(fits("f32", 2));
    EXPECT_TRUE(fits("f64", 4)) << "two words";
    EXPECT_FALSE(fits("u64", 2));
}

}  // namespace
}  // namespace tools
