// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/wait_stages.hpp"

#include <gtest/gtest.h>

namespace rmem {
namespace {

using Act = WaitStages::Act;

constexpr unsigned kLimit = 3;

/// A step at that time.
Act step(WaitStages& stages, std::int64_t now, unsigned limit = kLimit) {
    return stages.spins_on(limit) ? Act::spin : stages.next(now, limit);
}

TEST(WaitStages, spins_then_yields_then_arms_once_and_sleeps) {
    WaitStages stages;
    stages.begin();
    EXPECT_EQ(step(stages, 0), Act::spin);
    EXPECT_EQ(step(stages, 0), Act::spin);
    EXPECT_EQ(step(stages, 10), Act::yield);
    EXPECT_EQ(step(stages, 10 + kYieldNs - 1), Act::yield);
    EXPECT_EQ(step(stages, 10 + kYieldNs), Act::arm);
    EXPECT_EQ(step(stages, 10 + kYieldNs), Act::sleep);
    EXPECT_TRUE(stages.is_sleeping());
    EXPECT_EQ(step(stages, 10 + 2 * kYieldNs), Act::sleep);
    stages.begin();
    EXPECT_TRUE(stages.is_spinning());
    EXPECT_EQ(step(stages, 10 + 2 * kYieldNs), Act::spin);
}

TEST(WaitStages, yields_as_often_as_it_is_told_however_late_its_turn_comes) {
    WaitStages stages(3);
    stages.begin();
    for (unsigned turn = 0; turn < 3; ++turn)
        EXPECT_EQ(step(stages, turn * 5 * kYieldNs, 0), Act::yield) << turn;
    EXPECT_EQ(step(stages, 15 * kYieldNs, 0), Act::arm);
}

TEST(WaitStages, looks_at_the_clock_now_and_then_while_it_spins) {
    WaitStages stages;
    stages.begin();
    unsigned looks = 0;
    for (unsigned poll = 0; poll < 3 * kSpinPollsPerCheck; ++poll)
        if (!stages.spins_on(~0U)) {
            EXPECT_EQ(stages.next(0, ~0U), Act::spin);
            ++looks;
        }
    EXPECT_EQ(looks, 3U);
}

TEST(WaitStages, says_once_that_spinning_is_over) {
    WaitStages stages;
    stages.begin();
    EXPECT_FALSE(stages.ends_spinning(0, kLimit));
    while (stages.spins_on(kLimit)) {
    }
    EXPECT_TRUE(stages.ends_spinning(0, kLimit));
    EXPECT_FALSE(stages.ends_spinning(0, kLimit));
    EXPECT_EQ(stages.next(0, kLimit), Act::yield);
}

}  // namespace
}  // namespace rmem
