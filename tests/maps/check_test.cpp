// SPDX-License-Identifier: Apache-2.0
#include "maps/check.hpp"

#include "tests/maps/rigs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace maps::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string variable(const std::string& name, const std::string& more) {
    return "[[variable]]\nname = '" + name + "'\n" + more + "\n";
}

struct Sentences {
    std::vector<std::string> errors, notes;
    std::vector<std::pair<unsigned, unsigned>> lines;  ///< of the errors
};

Sentences found_in(const std::string& text) {
    Sentences found;
    for (const Finding& one : check(map_of_text(text))) {
        const bool is_error = one.weight == Finding::Weight::error;
        (is_error ? found.errors : found.notes).push_back(one.sentence);
        if (is_error) found.lines.emplace_back(one.line, one.other_line);
    }
    return found;
}

TEST(CheckOfMaps, finds_no_error_in_a_good_one) {
    const auto findings = check(map_of_text(kRig));
    EXPECT_FALSE(has_errors(findings));
    EXPECT_THAT(found_in(kRig).notes, Contains(HasSubstr("'aircraft/altitude' on line 18 is the "
                                                         "first: a reader may see half")));
}

/// As in a maker's own pair of tables: one writes doubles 9 to 18, the other 0 to 9.
TEST(CheckOfMaps, finds_the_one_double_that_two_write) {
    const Sentences found =
        found_in(variable("written by A", "offset = 72\ntype = 'f64[10]'\nowner = 0") +
                 variable("written by B", "offset = 0\ntype = 'f64[10]'\nowner = 1"));
    ASSERT_EQ(found.errors.size(), 1U);
    EXPECT_EQ(found.errors[0],
              "'written by B' (f64[10], 0x0 to 0x4f, node 1) and 'written by A' "
              "(f64[10], 0x48 to 0x97, node 0) overlap, and have two writers; "
              "move one of them");
    EXPECT_EQ(found.lines[0], (std::pair{6U, 1U}));
}

TEST(CheckOfMaps, finds_what_lies_in_another_and_what_is_behind_that) {
    const Sentences found = found_in(variable("long", "offset = 0\ntype = 'u32[8]'") +
                                     variable("inside", "offset = 4\ntype = 'u32'") +
                                     variable("at its end", "offset = 28\ntype = 'u32'") +
                                     variable("behind", "offset = 32\ntype = 'u32'"));
    EXPECT_EQ(found.errors.size(), 2U);
    EXPECT_THAT(found.errors, Contains(HasSubstr("'inside'")));
    EXPECT_THAT(found.errors, Contains(HasSubstr("'at its end'")));
}

TEST(CheckOfMaps, finds_places_owners_and_values_that_cannot_be) {
    const std::string ring = "[ring]\nnodes = 2\nranks = 3\nbytes = 256\n";
    const std::pair<std::string, std::string> cases[] = {
        {"offset = 6\ntype = 'f32'",
         "is not at a multiple of 4 bytes, as its type needs; move it "
         "to 0x8"},
        {"offset = 252\ntype = 'f64'", "ends behind the memory, which has 0x100 bytes"},
        {"offset = 0\ntype = 'f32'\nowner = 2",
         "belongs to node 2, and the ring has 2 nodes, which count from 0"},
        {"offset = 0\ntype = 'f32'\nowner = 'rank 3'", "belongs to rank 3, and the ring has 3"},
        {"offset = 0\ntype = 'u8'\ninitial = 256",
         "begins with '256', which is not a whole number from 0 to 255"},
        {"offset = 0\ntype = 'text[4]'\ninitial = 'four'", "is not a text of less than 4 bytes"},
        {"offset = 0\ntype = 'f32[2]'\ninitial = 1", "is not for arrays and structures"},
        {"offset = 0\ntype = 'f32'\nminimum = 2\nmaximum = 1", "minimum of 2 above its maximum"},
    };
    for (const auto& [more, sentence] : cases) {
        const Sentences found = found_in(ring + variable("a", more));
        ASSERT_EQ(found.errors.size(), 1U) << more;
        EXPECT_THAT(found.errors[0], HasSubstr(sentence));
        EXPECT_EQ(found.lines[0].first, 5U);
    }
}

TEST(CheckOfMaps, finds_two_writers_of_a_word_where_the_card_sends_words) {
    const std::string two = variable("a", "offset = 0\ntype = 'u8'\nowner = 0") +
                            variable("b", "offset = 1\ntype = 'u8'\nowner = 1");
    EXPECT_THAT(found_in(two).errors, IsEmpty());
    EXPECT_THAT(found_in(two).notes, Contains(HasSubstr("in 1 words two write")));
    const Sentences found = found_in("[ring]\nwhole_words = true\n" + two);
    ASSERT_EQ(found.errors.size(), 1U);
    EXPECT_THAT(found.errors[0], HasSubstr("each takes the other's bytes back"));
}

TEST(CheckOfMaps, notes_holes_lines_that_two_write_often_and_what_has_no_place) {
    const auto notes = found_in(variable("a", "offset = 0\ntype = 'u32'\nowner = 0\nrate = 1000") +
                                variable("b", "offset = 8\ntype = 'u32'\nowner = 1\nrate = 1000") +
                                variable("c", "type = 'u32'"))
                           .notes;
    EXPECT_THAT(notes, Contains(HasSubstr("1 of 3 variables have no offset")));
    EXPECT_THAT(notes, Contains(HasSubstr("in 1 lines of 64 bytes two write often")));
    EXPECT_THAT(notes, Contains(HasSubstr("4 bytes in 1 holes")));
}

}  // namespace
}  // namespace maps::test
