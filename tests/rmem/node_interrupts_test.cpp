// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan

/// An interrupt reaches the program in each of the ways in which it may wait for one (a call, a
/// descriptor, a callback), whatever it does when the write comes; and any rank of the node.

#include "tests/rmem/node_pauses.hpp"
#include "tests/support/link_nodes.hpp"
#include "tests/support/test_ring.hpp"

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace rmem::test {
namespace {

constexpr std::int64_t kWaitNs = 30'000'000'000;

/// The next interrupt, when the descriptor says that there is one.
std::optional<Interrupt> next_by_descriptor(Node& node, int fd) {
    const Deadline deadline = Deadline::in(kWaitNs);
    while (!deadline.passed(now_ns())) {
        pollfd one{fd, POLLIN, 0};
        ::poll(&one, 1, kWaitNs / 1'000'000);
        if (const auto interrupt = node.next_interrupt(Deadline::now())) return interrupt;
    }
    return std::nullopt;
}

/// Takes the values from 1 on by `next`, and tells of each.
void take_all(std::uint32_t last, std::size_t offset,
              const std::function<std::optional<Interrupt>()>& next,
              std::atomic<std::uint32_t>& told) {
    for (std::uint32_t value = 1; value <= last; ++value) {
        const auto interrupt = next();
        ASSERT_TRUE(interrupt) << "none came after " << value - 1;
        ASSERT_EQ(interrupt->value, value);
        EXPECT_EQ(interrupt->offset, offset);
        EXPECT_EQ(interrupt->origin, 0U);
        EXPECT_EQ(interrupt->missed, 0U);
        told = value;
    }
}

// ---- One rank

class NodeInterrupts : public LinkConformance {
protected:
    static constexpr std::uint32_t kWrites = 40;
    static constexpr std::size_t kWatched = 0x204;

    /// Writes watched words and others, each watched one when the one before has been told.
    static void write_now_and_then(Self& self) {
        std::uint64_t state = 24;
        for (std::uint32_t value = 1; value <= kWrites; ++value) {
            pause(any_pause(state));
            self.write_word(kWatched - 4, value);
            self.write_word(kWatched + 4, value);
            self.write_word(kWatched, value);
            ASSERT_TRUE(is_told([&] { return self.shared.words[0] == value; }))
                << "interrupt " << value << " was missed";
        }
    }
    /// Takes all of them by `next`.
    static void take_all(Self& self, const std::function<std::optional<Interrupt>()>& next) {
        test::take_all(kWrites, kWatched, next, self.shared.words[0]);
        EXPECT_FALSE(self.node.next_interrupt(Deadline::now()));
    }
    void run_watcher(const Body& body) {
        run(2, [&](Self& self) {
            if (self.id == 1) self.node.watch(kWatched, 4);
            self.meet(0);
            if (self.id == 0) {
                write_now_and_then(self);
            } else {
                body(self);
            }
            self.meet(1);
        });
    }
};

TEST_P(NodeInterrupts, a_call_that_waits_gets_each_in_whatever_stage_of_waiting) {
    run_watcher([](Self& self) {
        take_all(self, [&] { return self.node.next_interrupt(Deadline::in(kWaitNs)); });
    });
}

TEST_P(NodeInterrupts, short_deadlines_that_pass_while_one_comes_lose_nothing) {
    run_watcher([](Self& self) {
        std::uint64_t state = 25;
        take_all(self, [&] {
            const Deadline deadline = Deadline::in(kWaitNs);
            std::optional<Interrupt> interrupt;
            while (!interrupt && !deadline.passed(program_now_ns())) {
                interrupt = self.node.next_interrupt(Deadline::in(any_pause(state)));
            }
            return interrupt;
        });
    });
}

TEST_P(NodeInterrupts, a_descriptor_that_is_polled_tells_of_each) {
    if (simulated()) GTEST_SKIP() << "a simulated process has no descriptor";
    run_watcher([](Self& self) {
        const int fd = self.node.interrupt_fd();
        take_all(self, [&] { return next_by_descriptor(self.node, fd); });
    });
}

TEST_P(NodeInterrupts, a_callback_gets_each_while_its_program_sleeps) {
    run_watcher([](Self& self) {
        std::atomic<std::uint32_t> wrong = 0;
        self.node.on_interrupt([&](const Interrupt& interrupt) {
            if (interrupt.value != self.shared.words[0] + 1 || interrupt.offset != kWatched)
                ++wrong;
            self.shared.words[0] = interrupt.value;
        });
        EXPECT_TRUE(is_told([&] { return self.shared.words[0] == kWrites; }));
        EXPECT_EQ(wrong, 0U);
        self.node.on_interrupt(nullptr);
    });
}

TEST_P(NodeInterrupts, a_callback_gets_each_while_its_program_waits_for_a_word) {
    run_watcher([](Self& self) {
        self.node.on_interrupt(
            [&](const Interrupt& interrupt) { self.shared.words[0] = interrupt.value; });
        std::uint32_t seen = 0;
        while (seen != kWrites) {
            const auto value = self.node.wait_change(kWatched + 4, seen, Deadline::in(kWaitNs));
            ASSERT_GT(value, seen);
            seen = value;
        }
        EXPECT_TRUE(is_told([&] { return self.shared.words[0] == kWrites; }));
        self.node.on_interrupt(nullptr);
    });
}

INSTANTIATE_TEST_SUITE_P(EachLink, NodeInterrupts,
                         conformance_on({{LinkKind::direct, {"none"}},
                                         {LinkKind::ring, {"none", "scramnet-burst"}},
                                         {LinkKind::fabric, {"none"}},
                                         {LinkKind::udp, {"none"}},
                                         {LinkKind::sim, {"none", "scramnet-burst"}}}),
                         conformance_case_name);

// ---- Two ranks of one node

/// Ranks 0 and 1 are of node 0, and ranks 2 and 3 of node 1. Rank 2 watches, and rank 3 does not.
class SharedInterrupts : public ::testing::TestWithParam<LinkKind> {
protected:
    static constexpr std::size_t kWatched = 0x40;
    static constexpr std::uint32_t kWrites = 40;

    /// Writes of ranks 0 and 1 in turn, each when the one before has been told.
    void write_now_and_then() {
        std::uint64_t state = 26;
        for (std::uint32_t value = 1; value <= kWrites; ++value) {
            pause(any_pause(state));
            write_word(value % 2 == 0 ? rank0_ : rank1_, kWatched, value);
            ASSERT_TRUE(is_told([&] { return told_ == value; }))
                << "interrupt " << value << " was missed";
        }
    }
    /// On rank 3's thread.
    void take_all(const std::function<std::optional<Interrupt>()>& next) {
        test::take_all(kWrites, kWatched, next, told_);
    }
    /// Its next interrupt has this value, and none was lost.
    static void expect_next(Node& node, std::uint32_t value) {
        const auto interrupt = node.next_interrupt(Deadline::in(kWaitNs));
        ASSERT_TRUE(interrupt);
        ASSERT_EQ(interrupt->value, value);
        ASSERT_EQ(interrupt->missed, 0U);
    }

    TestRing ring_{{.link = GetParam(), .ranks = 4, .user_bytes = kUdpBytes}};
    Node rank0_ = ring_.join(0), rank1_ = ring_.join(1);
    Node rank2_ = ring_.join(2), rank3_ = ring_.join(3);
    std::atomic<std::uint32_t> told_ = 0;
};

TEST_P(SharedInterrupts, wake_a_rank_that_waits_though_the_other_has_watched) {
    rank2_.watch(kWatched, 4);
    const std::jthread waiter(
        [&] { take_all([&] { return rank3_.next_interrupt(Deadline::in(kWaitNs)); }); });
    write_now_and_then();
}

TEST_P(SharedInterrupts, wake_a_rank_that_was_waiting_before_the_other_watched) {
    std::atomic<bool> begins = false;
    const std::jthread waiter([&] {
        begins = true;
        take_all([&] { return rank3_.next_interrupt(Deadline::in(kWaitNs)); });
    });
    EXPECT_TRUE(is_told([&] { return begins.load(); }));
    pause(20'000'000);  // by now it sleeps
    rank2_.watch(kWatched, 4);
    write_now_and_then();
}

TEST_P(SharedInterrupts, make_the_descriptor_of_a_rank_readable_though_the_other_has_watched) {
    rank2_.watch(kWatched, 4);
    const std::jthread waiter([&] {
        const int fd = rank3_.interrupt_fd();
        take_all([&] { return next_by_descriptor(rank3_, fd); });
    });
    write_now_and_then();
}

TEST_P(SharedInterrupts, come_to_the_callback_of_a_rank_though_the_other_has_watched) {
    rank3_.on_interrupt([&](const Interrupt& interrupt) { told_ = interrupt.value; });
    rank2_.watch(kWatched, 4);
    write_now_and_then();
}

TEST_P(SharedInterrupts, come_to_each_rank_once) {
    rank2_.watch(kWatched, 4);
    for (std::uint32_t value = 1; value <= kWrites; ++value) {
        write_word(rank0_, kWatched, value);
        for (Node* const taker : {&rank2_, &rank3_}) expect_next(*taker, value);
        ASSERT_FALSE(rank2_.next_interrupt(Deadline::now()));
        ASSERT_FALSE(rank3_.next_interrupt(Deadline::now()));
    }
}

TEST_P(SharedInterrupts, of_one_rank_are_not_held_up_by_another_that_takes_none) {
    rank2_.watch(kWatched, 4);
    constexpr std::uint32_t kMore = 2 * kInterruptQueueEntries;
    for (std::uint32_t value = 1; value <= kMore; ++value) {
        write_word(rank0_, kWatched, value);
        expect_next(rank2_, value);
        if (HasFailure()) return;
    }
    const auto interrupt = rank3_.next_interrupt(Deadline::in(kWaitNs));
    ASSERT_TRUE(interrupt);
    EXPECT_EQ(interrupt->missed, kMore - kInterruptQueueEntries);
    EXPECT_EQ(interrupt->value, interrupt->missed + 1);
}

TEST_P(SharedInterrupts, come_to_the_ranks_that_accept_their_number_where_they_are_sent) {
    const auto bit = [](unsigned number) { return std::uint64_t{1} << number; };
    const auto send = [&](unsigned number, std::uint32_t value) {
        EXPECT_TRUE(is_told([&] {
            const auto result = rank0_.send_interrupt(1, number, value);
            rank0_.poll();
            return result == WriteResult::ok;
        }));
    };
    const auto expect = [](Node& node, unsigned number, std::uint32_t value) {
        const auto interrupt = node.next_interrupt(Deadline::in(kWaitNs));
        ASSERT_TRUE(interrupt);
        EXPECT_EQ(interrupt->offset, number);
        EXPECT_EQ(interrupt->value, value);
    };
    rank2_.accept_interrupts(bit(1) | bit(2));
    rank3_.accept_interrupts(bit(3));
    for (std::uint32_t value = 1; value <= 5; ++value) send(value % 5, value);
    expect(rank2_, 1, 1);
    expect(rank2_, 2, 2);
    expect(rank3_, 3, 3);
    // What came before a rank accepted its number is not for it.
    rank3_.accept_interrupts(bit(2) | bit(3));
    rank2_.accept_interrupts(bit(1));
    for (unsigned number = 1; number <= 3; ++number) send(number, 10 + number);
    expect(rank2_, 1, 11);
    expect(rank3_, 2, 12);
    expect(rank3_, 3, 13);
    EXPECT_FALSE(rank2_.next_interrupt(Deadline::now()));
    EXPECT_FALSE(rank3_.next_interrupt(Deadline::now()));
}

TEST_P(SharedInterrupts, are_not_raised_by_writes_of_the_own_node) {
    rank2_.watch(kWatched, 4);
    write_word(rank3_, kWatched, 1);
    EXPECT_TRUE(rank3_.flush(Deadline::in(kWaitNs)));
    EXPECT_FALSE(rank2_.next_interrupt(Deadline::now()));
    write_word(rank0_, kWatched, 2);
    expect_next(rank2_, 2);
}

INSTANTIATE_TEST_SUITE_P(EachLink, SharedInterrupts,
                         ::testing::Values(LinkKind::direct, LinkKind::ring, LinkKind::udp,
                                           LinkKind::fabric),
                         [](const auto& of) { return std::string(name_of(of.param)); });

}  // namespace
}  // namespace rmem::test
