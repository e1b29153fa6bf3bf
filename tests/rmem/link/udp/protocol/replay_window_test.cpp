// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/replay_window.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace rmem::udp {
namespace {

constexpr std::uint64_t kSize = ReplayWindow::kSize;
constexpr std::uint64_t kGreatest = std::numeric_limits<std::uint64_t>::max();

TEST(ReplayWindowTest, takes_each_number_once) {
    ReplayWindow window;
    for (std::uint64_t number = 0; number < 5000; ++number) {
        EXPECT_TRUE(window.accept(number)) << number;
        EXPECT_FALSE(window.accept(number)) << number;
    }
}

TEST(ReplayWindowTest, begins_at_any_number) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, kSize, kGreatest}) {
        ReplayWindow window;
        EXPECT_TRUE(window.accept(first)) << first;
        EXPECT_FALSE(window.accept(first)) << first;
    }
}

TEST(ReplayWindowTest, takes_what_was_overtaken_by_less_than_a_window) {
    ReplayWindow window;
    ASSERT_TRUE(window.accept(10'000));
    for (std::uint64_t back = 1; back < kSize; ++back) {
        EXPECT_TRUE(window.accept(10'000 - back)) << back;
    }
    for (std::uint64_t back = 0; back < kSize; ++back) {
        EXPECT_FALSE(window.accept(10'000 - back)) << back;
    }
}

TEST(ReplayWindowTest, refuses_what_is_a_window_old_or_older) {
    ReplayWindow window;
    ASSERT_TRUE(window.accept(10'000));
    EXPECT_FALSE(window.accept(10'000 - kSize));
    EXPECT_FALSE(window.accept(10'000 - kSize - 1));
    EXPECT_FALSE(window.accept(0));
    EXPECT_TRUE(window.accept(10'000 - kSize + 1));
}

TEST(ReplayWindowTest, a_number_does_not_become_new_when_the_window_moves_past_it) {
    for (std::uint64_t step = 1; step < 3 * kSize; step += 61) {
        ReplayWindow window;
        ASSERT_TRUE(window.accept(7));
        ASSERT_TRUE(window.accept(7 + step));
        EXPECT_FALSE(window.accept(7)) << step;
    }
}

TEST(ReplayWindowTest, a_leap_forgets_nothing_wrong) {
    ReplayWindow window;
    for (std::uint64_t number = 0; number < 2 * kSize; ++number) {
        ASSERT_TRUE(window.accept(number));
    }
    constexpr std::uint64_t kFar = 1'000'000'000'000;
    ASSERT_TRUE(window.accept(kFar));
    for (std::uint64_t back = 1; back < kSize; ++back) {
        EXPECT_TRUE(window.accept(kFar - back)) << back;
    }
    EXPECT_FALSE(window.accept(2 * kSize));
}

TEST(ReplayWindowTest, works_up_to_the_greatest_number) {
    ReplayWindow window;
    ASSERT_TRUE(window.accept(0));
    ASSERT_TRUE(window.accept(kGreatest));
    EXPECT_TRUE(window.accept(kGreatest - kSize + 1));
    EXPECT_FALSE(window.accept(kGreatest));
    EXPECT_FALSE(window.accept(kGreatest - kSize));
    EXPECT_FALSE(window.accept(0));
}

/// Says the same with all numbers remembered.
class Reference {
public:
    bool accept(std::uint64_t number) {
        if (!seen_.empty() && *seen_.rbegin() >= number && *seen_.rbegin() - number >= kSize) {
            return false;
        }
        return seen_.insert(number).second;
    }

private:
    std::set<std::uint64_t> seen_;
};

TEST(ReplayWindowTest, agrees_with_a_set_of_all_numbers) {
    std::mt19937_64 random(4);
    ReplayWindow window;
    Reference reference;
    std::uint64_t newest = 5000;
    for (int i = 0; i < 200'000; ++i) {
        const std::uint64_t leap = random() % 100 == 0 ? random() % 4000 : random() % 4;
        newest += leap;
        const std::uint64_t number = newest - random() % 1100;
        ASSERT_EQ(window.accept(number), reference.accept(number)) << number << " step " << i;
    }
}

}  // namespace
}  // namespace rmem::udp
