// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/ring/waiting/word_sleepers.hpp"

#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "tests/rmem/threads.hpp"
#include "tests/support/child.hpp"

#include <atomic>
#include <memory>
#include <thread>

namespace rmem::test {
namespace {

struct WordSleepersTest : ::testing::Test {
    RingName name;
    std::shared_ptr<Ring> ring = open();
    WordSleepers sleepers{*ring};

    std::shared_ptr<Ring> open() const {
        constexpr std::size_t kBytes = std::size_t{WordSleepers::kBuckets} * kLineBytes * 2;
        return Ring::open(name.config(4, LinkKind::direct, kBytes), Deadline::never());
    }
    static std::atomic<std::uint32_t>& word(const Ring& ring, std::size_t offset) {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(ring.bank(0) + offset);
    }
    std::uint32_t wakes(unsigned rank) const { return wake_count(*ring, rank); }
    std::uint32_t counted() const { return ring->sleeper_counts().all.load(); }
};

TEST_F(WordSleepersTest, a_store_elsewhere_wants_nobody) {
    sleepers.add(1, 0x40);
    EXPECT_TRUE(sleepers.is_wanted(0x40));
    EXPECT_FALSE(sleepers.is_wanted(0x80));
    EXPECT_FALSE(sleepers.is_wanted(0x80, 64));
    EXPECT_TRUE(sleepers.is_wanted(0, 0x44));
    EXPECT_TRUE(sleepers.is_wanted(0, WordSleepers::kFewLines * kLineBytes + 4));
    sleepers.remove(1);
    EXPECT_FALSE(sleepers.is_wanted(0x40));
    EXPECT_FALSE(sleepers.is_wanted(0, 0x44));
}

TEST_F(WordSleepersTest, only_a_sleeper_for_the_word_is_woken) {
    sleepers.add(1, 0x40);
    sleepers.add(2, 0x44);                                        // the same line
    sleepers.add(3, 0x40 + WordSleepers::kBuckets * kLineBytes);  // the same count
    sleepers.wake(0x40, 4);
    EXPECT_EQ(wakes(1), 1U);
    EXPECT_EQ(wakes(2), 0U);
    EXPECT_EQ(wakes(3), 0U);
    sleepers.wake(0x3c, 4);
    sleepers.wake(0x48, 4);
    EXPECT_EQ(wakes(1) + wakes(2), 1U);
    sleepers.wake(0x3c, 12);
    EXPECT_EQ(wakes(2), 1U);
}

TEST_F(WordSleepersTest, a_guest_is_woken_as_a_rank_is) {
    const Membership guest(ring, {Member::kGuest, 1});
    sleepers.add(guest.rank(), 0x40);
    const std::uint32_t before = wakes(guest.rank());
    sleepers.wake(0x40, 4);
    EXPECT_EQ(wakes(guest.rank()), before + 1);
    EXPECT_EQ(counted(), 0U);
}

TEST_F(WordSleepersTest, an_entry_is_good_for_one_wake) {
    sleepers.add(1, 0x40);
    EXPECT_TRUE(sleepers.has(1));
    sleepers.wake(0x40, 4);
    EXPECT_FALSE(sleepers.has(1));
    EXPECT_FALSE(sleepers.is_wanted(0x40));
    sleepers.wake(0x40, 4);
    EXPECT_EQ(wakes(1), 1U);
    sleepers.remove(1);
    EXPECT_EQ(counted(), 0U);
}

TEST_F(WordSleepersTest, a_rank_has_one_entry) {
    sleepers.add(1, 0x40);
    sleepers.add(1, 0x80);
    EXPECT_FALSE(sleepers.is_wanted(0x40));
    EXPECT_EQ(counted(), 1U);
    sleepers.remove(1);
    EXPECT_EQ(counted(), 0U);
}

TEST_F(WordSleepersTest, an_entry_of_a_killed_rank_goes_with_its_next_incarnation_or_a_wake) {
    for (const bool is_woken : {true, false}) {
        staying([&](const auto& stay) {
            const auto mine = open();
            const Membership member(mine, {1, 1});
            WordSleepers(*mine).add(1, 0x40);
            stay();
        }).kill();
        EXPECT_TRUE(sleepers.is_wanted(0x40));
        if (is_woken) sleepers.wake(0x40, 4);
        const Membership next(ring, {1, 1});
        EXPECT_FALSE(sleepers.is_wanted(0x40)) << is_woken;
        EXPECT_EQ(counted(), 0U);
    }
}

TEST_F(WordSleepersTest, a_made_up_entry_is_harmless) {
    for (const std::uint64_t entry :
         {~std::uint64_t{0}, std::uint64_t{1} << 48, std::uint64_t{1}}) {
        ring->sleeper_entries()[1].store(entry);
        sleepers.wake(0, 0x1000);
        sleepers.remove(1);
        EXPECT_FALSE(sleepers.has(1));
    }
}

TEST_F(WordSleepersTest, a_watched_word_is_wanted_and_wakes_no_sleeper) {
    const Membership member(ring, {1, 1});
    InterruptBoard board(*ring, 1, 1);
    board.watch(0x40, 8, Trigger::any_write);
    board.watch(0x80, 4, Trigger::marked);
    board.watch(0x80, 4, Trigger::any_write);
    EXPECT_TRUE(sleepers.is_wanted(0x44));
    EXPECT_TRUE(sleepers.is_wanted(0x80));
    EXPECT_FALSE(sleepers.is_wanted(0xc0));
    EXPECT_EQ(counted(), 3U);
    sleepers.wake(0x40, 4);
    EXPECT_EQ(counted(), 3U);
    board.mark(0xc0, 4);
    EXPECT_EQ(counted(), 3U) << "its own writes raise nothing here";
    board.unwatch(0x40, 4);
    EXPECT_TRUE(sleepers.is_wanted(0x40)) << "of the same line";
    board.unwatch(0, 0x100);
    EXPECT_EQ(counted(), 0U);
}

TEST_F(WordSleepersTest, words_that_the_dead_watched_are_wanted_no_longer) {
    run_in_child([&] {
        const auto mine = open();
        const Membership member(mine, {1, 1});
        InterruptBoard(*mine, 1, 1).watch(0, 0x1000, Trigger::any_write);
    });
    EXPECT_EQ(counted(), 0x1000U / 4);
    const Membership next(ring, {1, 1});
    InterruptBoard board(*ring, 1, 1);
    EXPECT_EQ(counted(), 0U);
}

// As in rmem/ring/waiting/waiting: a lost wake-up is a sleep until the time-out with the word
// changed and the count of wake-ups unmoved.
TEST_F(WordSleepersTest, a_store_that_meets_a_sleeper_lying_down_wakes_it) {
    if (!register_fences()) GTEST_SKIP() << "the kernel refuses membarrier(2) here";
    constexpr std::uint32_t kRounds = 20'000;
    constexpr std::int64_t kLongSleepNs = 5'000'000'000;
    SharedValue<std::atomic<std::uint32_t>> lying_down;
    Child writer([&] {
        register_fences();
        const auto mine = open();
        const WordSleepers others(*mine);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            while (lying_down->load() < round) cpu_relax();
            for (std::uint32_t i = 0; i < round % 64; ++i) cpu_relax();
            word(*mine, 0x40).store(round, std::memory_order_release);
            if (others.is_wanted(0x40)) others.wake(0x40, 4);
        }
    });
    std::uint32_t lost = 0;
    for (std::uint32_t round = 1; round <= kRounds && lost == 0; ++round) {
        const auto is_stored = [&] {
            return word(*ring, 0x40).load(std::memory_order_acquire) >= round;
        };
        lying_down->store(round);
        while (!is_stored()) {
            const std::uint32_t count = wakes(1);
            sleepers.add(1, 0x40);
            if (is_stored()) break;
            sleep_until_woken(*ring, 1, count, kLongSleepNs);
            lost += is_stored() && wakes(1) == count ? 1U : 0U;
        }
        sleepers.remove(1);
    }
    EXPECT_EQ(lost, 0U);
    if (lost != 0) writer.kill();
    EXPECT_EQ(writer.wait(), lost == 0 ? 0 : -1000);
    EXPECT_EQ(counted(), 0U);
}

// Several sleepers for words of one line and one count, and a writer that goes round: each is woken
// by its own word alone, whatever it was doing then.
TEST_F(WordSleepersTest, each_of_several_sleepers_gets_all_changes_of_its_word) {
    constexpr std::uint32_t kChanges = 300;
    const std::size_t places[] = {0x40, 0x44, 0x40 + WordSleepers::kBuckets * kLineBytes};
    std::atomic<std::uint32_t> done[3] = {};
    Threads waiters(3, [&](unsigned i) {
        Waiter waiter(*ring, i + 1);
        for (std::uint32_t seen = 0; seen < kChanges; done[i].store(seen)) {
            waiter.begin_for_word(sleepers, places[i]);
            while (word(*ring, places[i]).load(std::memory_order_acquire) == seen) {
                static_cast<void>(waiter.step(Deadline::never()));
            }
            waiter.end();
            ++seen;
        }
    });
    for (std::uint32_t change = 1; change <= kChanges; ++change) {
        for (unsigned i = 0; i < 3; ++i) {
            if (change % 16 == 0) eventually([&] { return sleepers.has(i + 1); });
            word(*ring, places[i]).store(change, std::memory_order_release);
            if (sleepers.is_wanted(places[i])) sleepers.wake(places[i], 4);
            while (done[i].load() < change) std::this_thread::yield();
        }
    }
    waiters.join();
    EXPECT_EQ(counted(), 0U);
}

}  // namespace
}  // namespace rmem::test
