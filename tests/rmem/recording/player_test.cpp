// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/player.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace rmem {
namespace {

constexpr std::int64_t kStart = 1'000'000;  // of the recording
constexpr std::int64_t kNow = 77'000;       // when playing begins

Player player(const char* speed) {
    return {parse_play_speed(speed), kStart, kNow};
}

TEST(Player, at_the_recorded_speed_a_write_is_due_as_long_after_the_start_as_it_was) {
    Player played = player("1x");
    EXPECT_EQ(played.due_ns(kStart + 500), kNow + 500);
    EXPECT_FALSE(played.take(kStart + 500, kNow + 499));
    EXPECT_TRUE(played.take(kStart + 500, kNow + 500));
}

TEST(Player, a_speed_divides_the_times) {
    EXPECT_EQ(player("10x").due_ns(kStart + 5000), kNow + 500);
    EXPECT_EQ(player("0.5x").due_ns(kStart + 500), kNow + 1000);
    EXPECT_EQ(player("2.5x").due_ns(kStart + 5), kNow + 2);
    EXPECT_EQ(player("0.001x").due_ns(kStart + 1), kNow + 1000);
}

TEST(Player, due_times_have_no_error_that_grows) {
    constexpr std::int64_t kYear = 365LL * 86'400 * 1'000'000'000;
    EXPECT_EQ(player("3x").due_ns(kStart + 3 * kYear), kNow + kYear);
    EXPECT_EQ(player("0.3x").due_ns(kStart + 3 * kYear), kNow + 10 * kYear);
}

TEST(Player, what_stepped_back_before_the_start_is_due_at_once) {
    Player played = player("1x");
    EXPECT_TRUE(played.take(kStart - 1, kNow));
    EXPECT_TRUE(played.take(std::numeric_limits<std::int64_t>::min(), kNow));
}

TEST(Player, a_time_that_cannot_be_told_is_never) {
    EXPECT_EQ(player("0.001x").due_ns(std::int64_t{1} << 60), kNever);
    Player early(parse_play_speed("1x"), -5, kNow);
    EXPECT_EQ(early.due_ns(kNever), kNever);
}

TEST(Player, as_fast_as_possible_everything_is_due) {
    Player played = player("max");
    EXPECT_TRUE(played.take(kStart, kNow));
    EXPECT_TRUE(played.take(kStart + 1'000'000'000'000, kNow));
}

TEST(Player, stepped_each_step_lets_one_write_pass) {
    Player played = player("step");
    EXPECT_FALSE(played.take(kStart, kNow));
    EXPECT_EQ(played.due_ns(kStart), kNever);
    EXPECT_FALSE(played.take(kStart, kNever));
    played.step();
    EXPECT_TRUE(played.take(kStart, kNow));
    EXPECT_FALSE(played.take(kStart + 1, kNow + 1));
    played.step(2);
    EXPECT_TRUE(played.take(kStart + 1, kNow + 1));
    EXPECT_TRUE(played.take(kStart + 2, kNow + 1));
    EXPECT_FALSE(played.take(kStart + 3, kNow + 1));
}

TEST(Player, a_speed_is_read_as_it_is_written) {
    EXPECT_EQ(parse_play_speed("1x").thousandths, 1000u);
    EXPECT_EQ(parse_play_speed("0.25x").thousandths, 250u);
    EXPECT_EQ(parse_play_speed("1.005x").thousandths, 1005u);
    EXPECT_EQ(parse_play_speed("1000000x").thousandths, 1'000'000'000u);
    EXPECT_EQ(parse_play_speed("max").kind, PlaySpeed::Kind::unpaced);
    EXPECT_EQ(parse_play_speed("step").kind, PlaySpeed::Kind::stepped);
}

TEST(Player, what_is_no_speed_is_refused) {
    for (const char* text : {"", "x", "1", "0x", "0.0x", "-1x", "1.x", ".5x", "1.0001x", "1,5x",
                             "1000001x", "99999999999x", "fast", "1x ", "1.+5x"}) {
        EXPECT_THROW(parse_play_speed(text), Error) << text;
    }
}

}  // namespace
}  // namespace rmem
