// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan
#include "rmem/ring/waiting/waiting.hpp"

#include "rmem/base/fence.hpp"

#include "tests/support/child.hpp"

#include <sched.h>

#include <atomic>
#include <memory>
#include <thread>

namespace rmem::test {
namespace {

struct WaitingTest : ::testing::Test {
    RingName name;
    std::shared_ptr<Ring> ring = open();

    std::shared_ptr<Ring> open() const { return Ring::open(name.config(4), Deadline::never()); }
    /// These ranks have joined, as far as others can see.
    void let_join(unsigned ranks) const {
        for (unsigned r = 0; r < ranks; ++r)
            ring->rank(r).state = static_cast<std::uint32_t>(RankState::joined);
    }
    static std::atomic<std::uint32_t>& word(const Ring& ring, unsigned index) {
        return reinterpret_cast<std::atomic<std::uint32_t>*>(ring.bank(0))[index];
    }
    /// Waits until the word has at least this value.
    static void await(Waiter& waiter, const Ring& ring, unsigned index, std::uint32_t value) {
        waiter.begin();
        while (word(ring, index).load(std::memory_order_acquire) < value) {
            ASSERT_NE(waiter.step(Deadline::never()), Step::expired);
        }
        waiter.end();
    }
    bool sleeps(unsigned rank) const { return ring->attention()[rank].load() != 0; }
};

TEST_F(WaitingTest, a_deadline_ends_a_wait) {
    Waiter waiter(*ring, 0);
    waiter.begin();
    const Deadline deadline = Deadline::in(3'000'000);
    Step step = Step::poll;
    while (step != Step::expired) step = waiter.step(deadline);
    waiter.end();
    EXPECT_TRUE(deadline.passed(now_ns()));
    EXPECT_FALSE(sleeps(0)) << "who has stopped waiting does not want to be woken";
}

TEST_F(WaitingTest, a_deadline_that_has_passed_ends_it_soon) {
    Waiter waiter(*ring, 0);
    waiter.begin();
    for (unsigned i = 0; i <= kSpinPollsPerCheck; ++i) {
        if (waiter.step(Deadline::now()) == Step::expired) return;
    }
    FAIL() << "not within the polls between two looks at the clock";
}

TEST_F(WaitingTest, a_long_wait_asks_to_look_after_the_peers) {
    Waiter waiter(*ring, 0);
    waiter.begin();
    int asked = 0;
    while (asked < 3) asked += waiter.step(Deadline::never()) == Step::check_peers ? 1 : 0;
    waiter.end();
}

TEST_F(WaitingTest, a_post_counts_a_wake_up_for_a_sleeper) {
    int woken_early = 0;
    for (std::uint32_t round = 1; round <= 10; ++round) {
        std::thread sleeper([&] {
            Waiter waiter(*ring, 1);
            await(waiter, *ring, 0, round);
        });
        ASSERT_TRUE(eventually([&] { return sleeps(1); }));
        const std::uint32_t before = ring->rank(1).wake.load();
        word(*ring, 0).store(round, std::memory_order_release);
        Waiter(*ring, 0).notify(1);
        woken_early += ring->rank(1).wake.load() != before ? 1 : 0;
        sleeper.join();
    }
    EXPECT_GT(woken_early, 0);
}

TEST_F(WaitingTest, nobody_is_woken_who_does_not_sleep) {
    const std::uint32_t before = ring->rank(1).wake.load();
    Waiter(*ring, 0).notify(1);
    EXPECT_EQ(ring->rank(1).wake.load(), before);
}

TEST_F(WaitingTest, a_waiter_clears_only_its_own_attention) {
    ring->attention()[0].fetch_or(kAttentionDescriptor);
    Waiter waiter(*ring, 0);
    waiter.begin();
    while (!(ring->attention()[0].load() & kAttentionSleeping)) waiter.step(Deadline::never());
    waiter.end();
    EXPECT_EQ(ring->attention()[0].load(), kAttentionDescriptor);
    ring->attention()[0].store(0);
}

// The case that a fence at the sleeper alone loses: the post lands while the sleeper lies down. A
// lost wake-up is a sleep until the time-out, with the word posted and the count of wake-ups
// unmoved.
TEST_F(WaitingTest, a_post_that_meets_a_sleeper_lying_down_wakes_it) {
    if (!register_fences()) GTEST_SKIP() << "the kernel refuses membarrier(2) here";
    constexpr std::uint32_t kRounds = 20'000;
    constexpr std::int64_t kLongSleepNs = 5'000'000'000;
    SharedValue<std::atomic<std::uint32_t>> lying_down;
    Child poster([&] {
        const auto mine = open();
        Waiter waiter(*mine, 0);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            while (lying_down->load() < round) cpu_relax();
            for (std::uint32_t i = 0; i < round % 64; ++i) cpu_relax();
            word(*mine, 0).store(round, std::memory_order_release);
            waiter.notify(1);
        }
    });
    std::uint32_t lost = 0;
    for (std::uint32_t round = 1; round <= kRounds && lost == 0; ++round) {
        const auto posted = [&] { return word(*ring, 0).load(std::memory_order_acquire) >= round; };
        lying_down->store(round);
        while (!posted()) {
            const std::uint32_t count = wake_count(*ring, 1);
            ask_attention(*ring, 1, kAttentionSleeping);
            if (posted()) break;
            sleep_until_woken(*ring, 1, count, kLongSleepNs);
            lost += posted() && wake_count(*ring, 1) == count ? 1U : 0U;
        }
        clear_attention(*ring, 1, kAttentionSleeping);
    }
    EXPECT_EQ(lost, 0U);
    if (lost != 0) poster.kill();
    EXPECT_EQ(poster.wait(), lost == 0 ? 0 : -1000);
}

TEST_F(WaitingTest, with_more_ranks_than_processors_nobody_spins) {
    let_join(4);
    if (allowed_processors() >= 4) GTEST_SKIP() << "this host has a processor for each rank";
    Waiter waiter(*ring, 0);
    waiter.begin();
    // The first step already looks at the clock, which a spinning one does not.
    EXPECT_EQ(waiter.step(Deadline::now()), Step::expired);
}

TEST_F(WaitingTest, ranks_that_sleep_need_no_processor) {
    let_join(4);
    for (unsigned r = 0; r < 4; ++r) {
        ring->rank(r).processors[0] = 1;
        if (r != 0) ring->attention()[r].store(kAttentionAsleep);
    }
    EXPECT_EQ(ring->joined_ranks(), 4U);
    EXPECT_EQ(ring->awake_ranks(), 1U);
    Waiter waiter(*ring, 0);
    waiter.begin();
    EXPECT_EQ(waiter.step(Deadline::now()), Step::poll) << "it spins";
    wake_rank(*ring, 1);
    EXPECT_EQ(ring->awake_ranks(), 2U) << "its waker counts it before it runs";
    EXPECT_TRUE(waiter.is_crowded());
}

TEST_F(WaitingTest, a_waiter_that_spins_gives_way_soon_after_others_have_woken_up) {
    let_join(2);
    for (unsigned r = 0; r < 2; ++r) ring->rank(r).processors[0] = 1;
    ring->attention()[1].store(kAttentionAsleep);
    Waiter waiter(*ring, 0);
    for (const unsigned most : {kSpinPolls, 100U}) {
        waiter.set_most_polls(most);
        waiter.begin();
        EXPECT_EQ(waiter.step(Deadline::now()), Step::poll) << "it spins";
        wake_rank(*ring, 1);
        for (unsigned i = 0; i < most / 4; ++i)
            EXPECT_EQ(waiter.step(Deadline::in(kCheckNs * kMaxCrowd)) == Step::expired, false);
        EXPECT_EQ(waiter.step(Deadline::now()), Step::expired) << "each step looks at the clock";
        waiter.end();
        ring->attention()[1].store(kAttentionAsleep);
    }
}

TEST_F(WaitingTest, ranks_of_other_nodes_need_a_processor_while_they_are_awake) {
    let_join(1);
    ring->rank(0).processors[0] = 1;
    Waiter waiter(*ring, 0);
    EXPECT_FALSE(waiter.is_crowded());
    Company company;
    company.ranks.push_back({ring, 1});
    company.processors[0] = 1;
    waiter.set_company(company);
    EXPECT_TRUE(waiter.is_crowded());
    ring->attention()[1].store(kAttentionAsleep);
    EXPECT_FALSE(waiter.is_crowded());
    company.daemons = 1;
    waiter.set_company(company);
    EXPECT_TRUE(waiter.is_crowded());
}

TEST_F(WaitingTest, at_least_one_processor_is_allowed_and_an_affinity_mask_counts) {
    EXPECT_GE(allowed_processors(), 1U);
    run_in_child([] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
        const bool is_pinned = ::sched_setaffinity(0, sizeof one, &one) == 0;
        EXPECT_TRUE(!is_pinned || allowed_processors() == 1U);
    });
}

}  // namespace
}  // namespace rmem::test
