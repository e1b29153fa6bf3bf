// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/ring/interrupts.hpp"

#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

constexpr unsigned kNodes = 4;
constexpr std::size_t kUserBytes = 4096;

/// A ring of four nodes, one rank each, all of them threads of this process.
struct InterruptsTest : ::testing::Test {
    RingName name;
    std::shared_ptr<Ring> ring = Ring::open(name.config(kNodes), Deadline::never());
    std::vector<std::unique_ptr<Membership>> members;
    std::vector<std::unique_ptr<InterruptBoard>> boards;

    InterruptsTest() {
        for (unsigned n = 0; n < kNodes; ++n) join(n);
    }
    void join(unsigned n) {
        members.push_back(std::make_unique<Membership>(ring, Member{n, n}));
        boards.push_back(std::make_unique<InterruptBoard>(*ring, n, n));
    }
    InterruptBoard& node(unsigned n) { return *boards[n]; }

    void write_word(unsigned n, std::size_t offset, std::uint32_t value) {
        reinterpret_cast<std::atomic<std::uint32_t>*>(ring->bank(n) + offset)->store(value);
        if (node(n).anyone_watches()) node(n).written(offset, kWordBytes);
    }
    std::uint64_t raised_at(unsigned n) {
        return ring->node(n).link.get(LinkCounter::interrupts_raised);
    }
    /// It takes this one, none lost.
    void expect_taken(unsigned n, std::size_t offset, std::uint32_t value, unsigned origin) {
        const auto interrupt = node(n).take();
        ASSERT_TRUE(interrupt);
        EXPECT_EQ(interrupt->offset, offset);
        EXPECT_EQ(interrupt->value, value);
        EXPECT_EQ(interrupt->origin, origin);
        EXPECT_EQ(interrupt->missed, 0U);
    }
};

TEST_F(InterruptsTest, an_interrupt_tells_address_origin_and_value) {
    node(1).watch(0x40, 4, Trigger::any_write);
    EXPECT_TRUE(node(3).anyone_watches());
    write_word(2, 0x40, 77);
    EXPECT_TRUE(node(1).pending());
    expect_taken(1, 0x40, 77, 2);
    EXPECT_FALSE(node(1).pending());
    EXPECT_FALSE(node(1).take());
    EXPECT_EQ(raised_at(1), 1U);
}

TEST_F(InterruptsTest, a_range_that_begins_or_ends_inside_a_word_watches_the_whole_word) {
    node(1).watch(0x42, 4, Trigger::any_write);
    write_word(0, 0x3c, 1);
    write_word(0, 0x40, 1);
    write_word(0, 0x44, 2);
    write_word(0, 0x48, 3);
    EXPECT_EQ(node(1).take()->offset, 0x40U);
    EXPECT_EQ(node(1).take()->offset, 0x44U);
    EXPECT_FALSE(node(1).take());
}

TEST_F(InterruptsTest, a_long_write_raises_once_for_each_watched_word) {
    node(1).watch(0x100, 4, Trigger::any_write);
    node(1).watch(0x1fc, 8, Trigger::any_write);
    auto* words = reinterpret_cast<std::uint32_t*>(ring->bank(0));
    for (std::uint32_t i = 0; i < kUserBytes / 4; ++i) words[i] = i;
    node(0).written(0, kUserBytes);
    for (const std::uint32_t offset : {0x100U, 0x1fcU, 0x200U})
        expect_taken(1, offset, offset / 4, 0);
    EXPECT_FALSE(node(1).take());
}

TEST_F(InterruptsTest, every_word_of_the_memory_can_be_watched) {
    node(1).watch(0, kUserBytes, Trigger::any_write);
    for (std::uint32_t offset = 0; offset < kUserBytes; offset += 4) {
        write_word(0, offset, offset);
        expect_taken(1, offset, offset, 0);
        if (HasFailure()) return;
    }
}

TEST_F(InterruptsTest, every_watching_node_gets_its_own_but_the_writer) {
    for (const unsigned n : {0U, 1U, 2U}) node(n).watch(0x40, 4, Trigger::any_write);
    write_word(2, 0x40, 5);
    for (const unsigned n : {0U, 1U}) EXPECT_TRUE(node(n).take()) << n;
    for (const unsigned n : {2U, 3U}) EXPECT_FALSE(node(n).take()) << n;
}

TEST_F(InterruptsTest, a_marked_watch_needs_the_writers_mark) {
    node(1).watch(0x40, 8, Trigger::marked);
    node(0).mark(0x40, 4);
    write_word(0, 0x44, 1);
    EXPECT_FALSE(node(1).take()) << "the writer has not marked this word";
    write_word(2, 0x40, 1);
    EXPECT_FALSE(node(1).take()) << "this writer has marked nothing";
    write_word(0, 0x40, 1);
    EXPECT_TRUE(node(1).take());
    node(0).unmark(0x40, 4);
    write_word(0, 0x40, 2);
    EXPECT_FALSE(node(1).take());
}

TEST_F(InterruptsTest, a_mark_is_asked_for_by_range) {
    node(0).mark(0x80, 4);
    EXPECT_TRUE(node(0).is_marked(0x80, 4));
    EXPECT_TRUE(node(0).is_marked(0, kUserBytes));
    EXPECT_TRUE(node(0).is_marked(0x83, 1));
    EXPECT_FALSE(node(0).is_marked(0x84, kUserBytes - 0x84));
    EXPECT_FALSE(node(0).is_marked(0, 0x80));
    EXPECT_FALSE(node(1).is_marked(0x80, 4)) << "marks are each node's own";
}

TEST_F(InterruptsTest, watching_again_replaces_the_trigger) {
    node(1).watch(0x40, 4, Trigger::any_write);
    node(1).watch(0x40, 4, Trigger::marked);
    write_word(0, 0x40, 1);
    EXPECT_FALSE(node(1).take());
    node(1).watch(0x40, 4, Trigger::any_write);
    write_word(0, 0x40, 1);
    EXPECT_TRUE(node(1).take());
}

TEST_F(InterruptsTest, a_node_that_stopped_watching_costs_writers_nothing) {
    node(1).watch(0x40, 400, Trigger::any_write);
    node(2).watch(0x80, 4, Trigger::marked);
    node(1).unwatch(0, kUserBytes);
    EXPECT_TRUE(node(0).anyone_watches());
    node(2).unwatch(0x80, 4);
    EXPECT_FALSE(node(0).anyone_watches());
    write_word(0, 0x40, 1);
    EXPECT_FALSE(node(1).take());
}

TEST_F(InterruptsTest, a_range_outside_the_memory_is_refused) {
    const std::function<void()> calls[] = {
        [&] { node(0).watch(kUserBytes, 4, Trigger::any_write); },
        [&] { node(0).watch(kUserBytes - 4, 8, Trigger::any_write); },
        [&] { node(0).watch(4, ~std::size_t{0}, Trigger::any_write); },
        [&] { node(0).watch(0, 0, Trigger::any_write); },
        [&] { node(0).unwatch(kUserBytes, 4); },
        [&] { node(0).mark(kUserBytes, 4); },
        [&] { node(0).unmark(kUserBytes, 4); }};
    for (const auto& call : calls) refused(Errc::invalid_argument, call);
    EXPECT_FALSE(node(0).is_marked(kUserBytes, 4));
    EXPECT_FALSE(node(0).anyone_watches());
    node(1).watch(0, kUserBytes, Trigger::any_write);
    node(0).written(kUserBytes, 64);  // a system region
    EXPECT_FALSE(node(1).take());
}

TEST_F(InterruptsTest, what_is_applied_raises_as_its_mark_says) {
    node(1).watch(0x40, 4, Trigger::any_write);
    node(1).watch(0x80, 4, Trigger::marked);
    node(1).applied(3, 0x40, 4, false);
    node(1).applied(3, 0x80, 4, false);
    node(1).applied(3, 0x80, 4, true);
    node(1).applied(1, 0x40, 4, true);
    expect_taken(1, 0x40, 0, 3);
    expect_taken(1, 0x80, 0, 3);
    EXPECT_FALSE(node(1).take()) << "own writes raise nothing";
}

// ---- The queue

TEST_F(InterruptsTest, a_reader_that_is_too_slow_gets_the_last_and_is_told_how_many_it_lost) {
    constexpr std::uint32_t kMore = 100;
    node(1).watch(0x40, 4, Trigger::any_write);
    for (int round = 0; round < 3; ++round) {
        for (std::uint32_t i = 0; i < kInterruptQueueEntries + kMore; ++i) write_word(0, 0x40, i);
        EXPECT_TRUE(node(1).pending());
        for (std::uint32_t i = kMore; i < kInterruptQueueEntries + kMore; ++i) {
            const auto next = node(1).take();
            ASSERT_TRUE(next);
            ASSERT_EQ(next->value, i);
            ASSERT_EQ(next->missed, i == kMore ? kMore : 0U);
        }
        EXPECT_FALSE(node(1).pending());
        EXPECT_FALSE(node(1).take());
    }
    EXPECT_EQ(ring->node(1).link.get(LinkCounter::interrupts_lost), 3 * kMore);
    EXPECT_EQ(raised_at(1), 3 * (kInterruptQueueEntries + kMore));
    write_word(0, 0x40, 1);
    EXPECT_EQ(node(1).take()->missed, 0U);
}

/// The other nodes' threads write to node 0's watched words at once, value after value.
class Raisers {
public:
    Raisers(InterruptsTest& test, std::uint32_t writes) {
        for (unsigned n = 1; n < kNodes; ++n) {
            threads_.emplace_back([this, &test, n, writes] {
                for (std::uint32_t i = 1; i <= writes; ++i) {
                    const std::uint32_t value = i * kNodes + n;
                    test.write_word(n, value % 256 * 4, value);
                }
                --running_;
            });
        }
    }
    /// Takes all that the board gets, each raiser's in order; `before` each.
    void take_all(InterruptBoard& board, const std::function<void()>& before) {
        std::uint32_t last[kNodes] = {};
        for (;;) {
            const bool is_over = running_ == 0;
            if (!is_over) before();
            const auto interrupt = board.take();
            if (!interrupt && is_over) break;
            if (!interrupt) continue;
            ++taken;
            missed += interrupt->missed;
            ASSERT_EQ(interrupt->value % 256 * 4, interrupt->offset);
            ASSERT_EQ(interrupt->value % kNodes, interrupt->origin);
            ASSERT_GT(interrupt->value, last[interrupt->origin]);
            last[interrupt->origin] = interrupt->value;
        }
    }
    bool run() const { return running_ != 0; }

    std::uint64_t taken = 0, missed = 0;

private:
    std::atomic<int> running_ = kNodes - 1;
    std::vector<std::jthread> threads_;
};

TEST_F(InterruptsTest, writers_that_raise_at_once_lose_nothing_that_is_not_counted) {
    constexpr std::uint32_t kWrites = 20'000;
    node(0).watch(0, kUserBytes, Trigger::any_write);
    Raisers raisers(*this, kWrites);
    raisers.take_all(node(0), std::this_thread::yield);
    EXPECT_EQ(raised_at(0), std::uint64_t{kWrites} * (kNodes - 1));
    // A place that is passed over, since its writer was put aside in it, also counts as one missed.
    EXPECT_GE(raisers.taken + raisers.missed, raised_at(0));
    EXPECT_EQ(ring->node(0).link.get(LinkCounter::interrupts_lost), raisers.missed);
}

TEST_F(InterruptsTest, a_reader_that_is_overrun_again_and_again_gets_the_rest_in_order) {
    constexpr std::uint32_t kWrites = 30'000;
    InterruptBoard slow(*ring, 0, 0);
    node(0).watch(0, kUserBytes, Trigger::any_write);
    Raisers raisers(*this, kWrites);
    raisers.take_all(slow, [&] {  // now and then it looks while the writers go round
        const std::uint64_t raised = raised_at(0);
        while (raisers.taken % 16 == 0 && raisers.run() &&
               raised_at(0) < raised + kInterruptQueueEntries / 2)
            std::this_thread::yield();
    });
    EXPECT_GT(raisers.missed, 0U);
    EXPECT_GE(raisers.taken + raisers.missed, std::uint64_t{kWrites} * (kNodes - 1));
}

TEST_F(InterruptsTest, a_sleeping_watcher_is_woken) {
    node(1).watch(0x40, 4, Trigger::any_write);
    const std::uint32_t before = ring->rank(1).wake.load();
    write_word(0, 0x40, 1);
    EXPECT_EQ(ring->rank(1).wake.load(), before) << "it does not sleep";
    ring->attention()[1].store(kAttentionSleeping);
    write_word(0, 0x40, 1);
    EXPECT_EQ(ring->rank(1).wake.load(), before) << "it sleeps for a message";
    ring->attention()[1].store(kAttentionTaking);
    ring->attention()[2].store(kAttentionTaking);
    write_word(0, 0x40, 1);
    EXPECT_EQ(ring->rank(1).wake.load(), before + 1);
    EXPECT_EQ(ring->attention()[1].load(), 0U) << "it has to ask again";
    EXPECT_EQ(ring->rank(2).wake.load(), 0U) << "this one watches nothing";
}

TEST_F(InterruptsTest, a_guest_that_sleeps_is_woken_as_well) {
    const Membership guest(ring, {Member::kGuest, 1});
    InterruptBoard(*ring, 1, guest.rank()).watch(0x40, 4, Trigger::any_write);
    ring->attention()[guest.rank()].store(kAttentionTaking);
    const std::uint32_t before = ring->rank(guest.rank()).wake.load();
    write_word(0, 0x40, 1);
    EXPECT_EQ(ring->rank(guest.rank()).wake.load(), before + 1);
}

// ---- The dead

TEST_F(InterruptsTest, what_a_rank_that_died_accepted_goes_though_another_of_its_node_is_alive) {
    const std::size_t number_3 = ring->config().register_offset(0, 3);
    const std::size_t number_5 = ring->config().register_offset(0, 5);
    const auto send = [&](std::size_t reg) {
        const SentInterrupt sent{1, 9};
        std::memcpy(ring->bank(1) + reg, &sent, sizeof sent);
        node(1).applied(0, reg, kRegisterBytes, false);
    };
    auto second = std::make_unique<InterruptBoard>(*ring, 1, 2);  // as if rank 2 were of node 1
    node(1).accept(std::uint64_t{1} << 3);
    second->accept(std::uint64_t{1} << 5);
    send(number_3);
    send(number_5);
    EXPECT_EQ(raised_at(1), 2U);
    EXPECT_EQ(node(1).take()->offset, 3U);
    EXPECT_EQ(second->take()->offset, 5U);
    EXPECT_FALSE(node(1).take());
    EXPECT_FALSE(node(1).pending());
    boards[1].reset();
    members[1].reset();
    join(1);
    std::swap(boards[1], boards.back());
    send(number_3);
    send(number_5);
    EXPECT_EQ(raised_at(1), 3U) << "nobody accepts number 3 any more";
    EXPECT_EQ(second->take()->offset, 5U);
    second->accept(0);
    send(number_5);
    EXPECT_EQ(raised_at(1), 3U);
    EXPECT_FALSE(node(0).anyone_watches());
}

TEST_F(InterruptsTest, a_node_that_comes_again_has_forgotten_what_its_former_incarnation_watched) {
    node(1).watch(0, kUserBytes, Trigger::any_write);
    node(1).mark(0x10, 4);
    write_word(0, 0x40, 1);
    boards[1].reset();
    members[1].reset();
    EXPECT_TRUE(node(0).anyone_watches()) << "nobody has cleared it yet";
    members[1] = std::make_unique<Membership>(ring, Member{1, 1});
    boards[1] = std::make_unique<InterruptBoard>(*ring, 1, 1);
    EXPECT_FALSE(node(0).anyone_watches());
    EXPECT_FALSE(node(1).is_marked(0x10, 4));
    EXPECT_FALSE(node(1).take());
    node(1).watch(0x40, 4, Trigger::any_write);
    write_word(0, 0x40, 2);
    EXPECT_EQ(node(1).take()->value, 2U);
}

}  // namespace
}  // namespace rmem::test
