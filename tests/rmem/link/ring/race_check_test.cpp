// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/race_check.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

namespace rmem {
namespace {

using ::testing::HasSubstr;

struct RaceCheck : ::testing::Test {
    std::vector<WriterRace> races;
    RaceChecker checker{2, 4096, [this](const WriterRace& race) { races.push_back(race); }};
};

TEST_F(RaceCheck, an_own_write_while_anothers_is_under_way_is_a_race) {
    checker.wrote(64, 1, 150);
    EXPECT_EQ(checker.arrives(1, 64, 1, 100, 200), 1U);
    ASSERT_EQ(races.size(), 1U);
    EXPECT_EQ(races[0].offset, 64U);
    EXPECT_EQ(races[0].node, 2U);
    EXPECT_EQ(races[0].other, 1U);
    EXPECT_EQ(races[0].written_ns, 150);
    EXPECT_EQ(races[0].other_written_ns, 100);
    EXPECT_EQ(races[0].other_arrived_ns, 200);
}

TEST_F(RaceCheck, own_writes_before_and_after_are_none) {
    checker.wrote(64, 1, 99);
    EXPECT_EQ(checker.arrives(1, 64, 1, 100, 200), 0U)
        << "the other one wrote second, and will report";
    checker.wrote(64, 1, 200);
    EXPECT_EQ(checker.arrives(1, 64, 1, 100, 200), 0U) << "it was there already";
}

TEST_F(RaceCheck, each_word_that_both_wrote_is_reported) {
    checker.wrote(64, 4, 150);
    EXPECT_EQ(checker.arrives(1, 72, 4, 100, 200), 2U);
    ASSERT_EQ(races.size(), 2U);
    EXPECT_EQ(races[0].offset, 72U);
    EXPECT_EQ(races[1].offset, 76U);
}

TEST_F(RaceCheck, bytes_of_a_word_are_several_writers) {
    checker.wrote(64, 1, 150, 0b0011);
    EXPECT_EQ(checker.arrives(1, 64, 1, 100, 200, 0b1100), 0U);
    EXPECT_EQ(checker.arrives(1, 64, 1, 100, 200, 0b0110), 1U);
    EXPECT_EQ(checker.arrives(1, 64, 1, 100, 200), 1U);
    ASSERT_EQ(races.size(), 2U);
    EXPECT_EQ(races[0].part, 0b0010);
    EXPECT_THAT(rmem::to_string(races[0]), HasSubstr("the byte at 0x41"));
    EXPECT_THAT(rmem::to_string(races[1]), HasSubstr("bytes of the word at 0x40"));
}

TEST_F(RaceCheck, of_two_writes_at_one_time_the_higher_node_reports) {
    checker.wrote(0, 1, 100);
    EXPECT_EQ(checker.arrives(1, 0, 1, 100, 200), 1U);
    EXPECT_EQ(checker.arrives(3, 0, 1, 100, 200), 0U);
}

TEST_F(RaceCheck, what_lies_outside_the_bank_is_ignored) {
    checker.wrote(4092, 8, 150);
    EXPECT_EQ(checker.arrives(1, 4092, 8, 100, 200), 1U);
    EXPECT_EQ(checker.arrives(1, 1U << 20U, 8, 100, 200), 0U);
}

TEST_F(RaceCheck, a_line_names_nodes_offset_and_times) {
    const std::string line = rmem::to_string(WriterRace{0x40, 2, 1, 150, 100, 200});
    EXPECT_THAT(line, HasSubstr("nodes 1 and 2"));
    EXPECT_THAT(line, HasSubstr("0x40"));
    EXPECT_THAT(line, HasSubstr("node 1 at 100 ns"));
    EXPECT_THAT(line, HasSubstr("node 2 50 ns later"));
    EXPECT_THAT(line, HasSubstr("200 ns"));
}

TEST(RaceCheckOutput, is_cut_off_after_some_lines) {
    RaceChecker checker(0, 4096);
    checker.wrote(0, 100, 150);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(checker.arrives(1, 0, 100, 100, 200), 100U);
    const std::string printed = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), RaceChecker::kMaxLines + 1);
    EXPECT_THAT(printed, HasSubstr("only counted"));
}

}  // namespace
}  // namespace rmem
