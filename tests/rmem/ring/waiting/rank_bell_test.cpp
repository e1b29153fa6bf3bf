// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/rank_bell.hpp"

#include "rmem/node.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_ring.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

namespace rmem::test {
namespace {

bool is_readable(int fd) {
    pollfd wanted{fd, POLLIN, 0};
    return ::poll(&wanted, 1, 0) == 1;
}

struct RankBellTest : ::testing::Test {
    TestRing ring{{.link = LinkKind::direct}};
    Membership member{ring.ring(), {0, 0}};

    bool ring_posts() const { return ring_bell(*ring.ring(), 0, BellUse::posts); }
};

struct ShownBellTest : RankBellTest {
    RankBell bell{*ring.ring(), 0, BellUse::posts};

    ShownBellTest() { bell.show(); }
};

TEST_F(ShownBellTest, is_rung_by_another_process) {
    EXPECT_FALSE(is_readable(bell.handle()));
    for (int round = 0; round < 3; ++round) {
        run_in_child([&] { EXPECT_TRUE(ring_bell(*ring.open(), 0, BellUse::posts)); });
        EXPECT_TRUE(is_readable(bell.handle()));
        bell.clear();
        EXPECT_FALSE(is_readable(bell.handle()));
    }
}

TEST_F(RankBellTest, is_rung_for_its_use_alone) {
    RankBell posts(*ring.ring(), 0, BellUse::posts);
    RankBell interrupts(*ring.ring(), 0, BellUse::interrupts);
    posts.show();
    EXPECT_FALSE(ring_bell(*ring.ring(), 0, BellUse::interrupts)) << "it is hidden";
    interrupts.show();
    EXPECT_TRUE(ring_bell(*ring.ring(), 0, BellUse::interrupts));
    EXPECT_FALSE(is_readable(posts.handle()));
    EXPECT_TRUE(is_readable(interrupts.handle()));
    interrupts.hide();
    EXPECT_FALSE(ring_bell(*ring.ring(), 0, BellUse::interrupts));
}

TEST_F(ShownBellTest, is_written_to_once_until_it_is_cleared) {
    for (int round = 0; round < 3; ++round) {
        EXPECT_FALSE(bell.was_rung());
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(ring_posts());
        EXPECT_TRUE(bell.was_rung());
        int waiting = 0;
        ASSERT_EQ(::ioctl(bell.handle(), FIONREAD, &waiting), 0);
        EXPECT_EQ(waiting, 1);
        bell.clear();
        EXPECT_FALSE(is_readable(bell.handle()));
    }
}

TEST_F(ShownBellTest, loses_no_post_between_its_clearing_and_the_look_after_that) {
    constexpr std::uint32_t kPosts = 20'000;
    std::atomic<std::uint32_t> post{0}, taken{0};
    const std::jthread ringer([&] {
        for (std::uint32_t i = 1; i <= kPosts; ++i) {
            post.store(i, std::memory_order_release);
            EXPECT_TRUE(ring_posts());
            while (taken.load() != i) std::this_thread::yield();
        }
    });
    for (std::uint32_t seen = 0; seen != kPosts;) {
        pollfd wanted{bell.handle(), POLLIN, 0};
        ASSERT_EQ(::poll(&wanted, 1, static_cast<int>(kPatienceNs / 1'000'000)), 1);
        bell.clear();
        seen = post.load(std::memory_order_acquire);
        taken = seen;
    }
}

TEST_F(ShownBellTest, stays_rung_when_it_is_signalled_more_often_than_a_pipe_holds) {
    for (int i = 0; i < 70'000; ++i) bell.signal();
    EXPECT_TRUE(is_readable(bell.handle()));
    bell.clear();
    EXPECT_FALSE(is_readable(bell.handle()));
}

TEST_F(RankBellTest, is_heard_again_when_its_rank_has_another) {
    for (int incarnation = 0; incarnation < 5; ++incarnation) {
        RankBell bell(*ring.ring(), 0, BellUse::posts);
        bell.show();
        EXPECT_TRUE(ring_posts());
        EXPECT_TRUE(is_readable(bell.handle()));
    }
}

TEST_F(ShownBellTest, is_not_written_to_when_it_is_no_pipe_or_another) {
    BellPlace& place = ring.ring()->rank(0).bells[static_cast<std::size_t>(BellUse::posts)];
    const std::uint64_t inode = place.inode;
    place.inode = inode + 1'000'000;
    EXPECT_FALSE(ring_posts());
    bell.clear();
    std::FILE* const file = std::tmpfile();
    place.descriptor = static_cast<std::uint32_t>(::fileno(file));
    EXPECT_FALSE(ring_posts());
    EXPECT_EQ(::lseek(::fileno(file), 0, SEEK_END), 0) << "the file is as it was";
    bell.clear();
    std::fclose(file);
    place.descriptor = 1'000'000;
    EXPECT_FALSE(ring_posts());
    EXPECT_FALSE(is_readable(bell.handle()));
}

TEST_F(RankBellTest, of_a_killed_process_kills_nobody) {
    Child listener = staying([&](const auto& stay) {
        const auto opened = ring.open();
        const Membership rank(opened, {1, 1});
        RankBell bell(*opened, 1, BellUse::posts);
        bell.show();
        stay();
    });
    EXPECT_TRUE(ring_bell(*ring.ring(), 1, BellUse::posts));
    listener.kill();
    static_cast<void>(ring_bell(*ring.ring(), 1, BellUse::posts));
    static_cast<void>(ring_bell(*ring.ring(), 1, BellUse::posts));
}

// ---- The descriptor of interrupts

TEST(InterruptDescriptor, is_readable_at_once_when_one_is_raised_and_not_once_it_is_taken) {
    TestRing ring({.link = LinkKind::direct, .joins = true});
    Node &a = ring.node(0), &b = ring.node(1);
    b.watch(64, 4, Trigger::any_write);
    const int fd = b.interrupt_fd();
    for (std::uint32_t i = 1; i <= 1'000; ++i) {
        // Its thread has no part in that: nobody waits for it.
        ASSERT_TRUE(eventually(
            [&] { return (ring.ring()->attention()[1].load() & kAttentionInterrupts) != 0; }));
        ASSERT_EQ(a.write_word(64, i), WriteResult::ok);
        ASSERT_TRUE(is_readable(fd));
        ASSERT_TRUE(b.next_interrupt(Deadline::now()));
        ASSERT_FALSE(is_readable(fd));
    }
}

TEST(InterruptDescriptor, leaves_interrupts_to_a_callback_and_gets_them_back) {
    TestRing ring({.link = LinkKind::direct, .joins = true});
    Node &a = ring.node(0), &b = ring.node(1);
    b.watch(64, 4, Trigger::any_write);
    const int fd = b.interrupt_fd();
    std::atomic<std::uint32_t> called{0};
    b.on_interrupt([&](const Interrupt& interrupt) { called = interrupt.value; });
    EXPECT_EQ(a.write_word(64, 1), WriteResult::ok);
    EXPECT_TRUE(eventually([&] { return called == 1; }));
    b.on_interrupt({});
    EXPECT_EQ(a.write_word(64, 2), WriteResult::ok);
    EXPECT_TRUE(eventually([&] { return is_readable(fd); }));
    const auto taken = b.next_interrupt(Deadline::now());
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->value, 2U);
}

}  // namespace
}  // namespace rmem::test
