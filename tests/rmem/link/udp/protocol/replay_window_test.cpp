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

TEST(ReplayWindowTest, begins_at_any_number) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, kSize, kGreatest}) {
        ReplayWindow window;
        EXPECT_TRUE(window.accept(first)) << first;
        EXPECT_FALSE(window.accept(first)) << first;
    }
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
