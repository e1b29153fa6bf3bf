// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/ring/waiting/sleeping_engines.hpp"

#include "rmem/ring/waiting/waiting.hpp"
#include "tests/support/child.hpp"

#include <atomic>
#include <memory>

namespace rmem::test {
namespace {

using State = SleepingEngines::State;

struct SleepingEnginesTest : ::testing::Test {
    RingName name;
    std::shared_ptr<Ring> ring = open();
    SleepingEngines engines{*ring};

    std::shared_ptr<Ring> open() const { return Ring::open(name.config(4), Deadline::never()); }
    State state(unsigned rank) const { return static_cast<State>(ring->rank(rank).engine.load()); }
    std::uint32_t count() const { return ring->delivery().engines_asleep.load(); }
};

TEST_F(SleepingEnginesTest, a_write_wakes_those_asleep_but_not_the_writers_own) {
    engines.lie_down(0, State::asleep);
    engines.lie_down(1, State::asleep);
    engines.lie_down(2, State::resting);
    EXPECT_EQ(count(), 2U);
    engines.wake_others(0);
    EXPECT_EQ(state(0), State::asleep);
    EXPECT_EQ(state(1), State::awake);
    EXPECT_EQ(state(2), State::resting);
    EXPECT_EQ(count(), 1U);
    EXPECT_TRUE(engines.rise(0));
    EXPECT_FALSE(engines.rise(1)) << "a writer has woken it";
    EXPECT_EQ(count(), 0U);
}

TEST_F(SleepingEnginesTest, one_that_rests_is_woken_by_name) {
    engines.lie_down(2, State::resting);
    engines.wake(2);
    EXPECT_EQ(state(2), State::awake);
    engines.lie_down(2, State::asleep);
    engines.wake(2);
    EXPECT_EQ(state(2), State::awake);
    EXPECT_EQ(count(), 0U);
}

TEST_F(SleepingEnginesTest, one_that_was_killed_asleep_is_woken_once_or_goes_with_its_successor) {
    for (const bool is_written : {true, false}) {
        staying([&](const auto& stay) {
            const auto mine = open();
            const Membership member(mine, {1, 1});
            SleepingEngines(*mine).lie_down(1, State::asleep);
            stay();
        }).kill();
        EXPECT_EQ(count(), 1U);
        if (is_written) engines.wake_others(0);
        const Membership next(ring, {1, 1});
        EXPECT_EQ(count(), 0U) << is_written;
        EXPECT_EQ(state(1), State::awake);
    }
}

// A lost wake-up is a sleep until the time-out although something was written.
TEST_F(SleepingEnginesTest, a_write_that_meets_one_lying_down_wakes_it) {
    if (!register_fences()) GTEST_SKIP() << "the kernel refuses membarrier(2) here";
    constexpr std::uint32_t kRounds = 20'000;
    constexpr std::int64_t kLongSleepNs = 5'000'000'000;
    SharedValue<std::atomic<std::uint32_t>> lying_down, written;
    Child writer([&] {
        register_fences();
        const auto mine = open();
        const SleepingEngines others(*mine);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            while (lying_down->load() < round) cpu_relax();
            for (std::uint32_t i = 0; i < round % 64; ++i) cpu_relax();
            written->store(round, std::memory_order_release);
            others.wake_others(0);
        }
    });
    std::uint32_t lost = 0;
    for (std::uint32_t round = 1; round <= kRounds && lost == 0; ++round) {
        const auto is_written = [&] { return written->load(std::memory_order_acquire) >= round; };
        lying_down->store(round);
        while (!is_written()) {
            engines.lie_down(1, State::asleep);
            if (is_written()) {
                engines.rise(1);
                break;
            }
            engines.sleep(1, State::asleep, kLongSleepNs);
            // One that has slept to the end takes itself off the count.
            lost += engines.rise(1) && is_written() ? 1U : 0U;
        }
    }
    EXPECT_EQ(lost, 0U);
    if (lost != 0) writer.kill();
    EXPECT_EQ(writer.wait(), lost == 0 ? 0 : -1000);
    EXPECT_EQ(count(), 0U);
}

}  // namespace
}  // namespace rmem::test
