// SPDX-License-Identifier: Apache-2.0
// ctest: check
#include "rmem/link/ring/memory.hpp"
#include "rmem/ring/membership.hpp"
#include "tests/rmem/link/ring/ring_fixture.hpp"
#include "tests/support/child.hpp"

#include <sys/types.h>

#include <csignal>

namespace rmem {
namespace {

using test::Child;
using test::eventually;
using test::RingRank;
using test::RingSpec;
using test::SharedValue;
using test::TestRing;
using test::write_blocks;

/// The signals between parent and children beside the ring.
struct Signs {
    std::atomic<std::uint32_t> arrived{0};
    std::atomic<bool> has_begun{false};
};

void gather(Signs& signs, std::uint32_t count) {
    signs.arrived.fetch_add(1);
    EXPECT_TRUE(eventually([&] { return signs.arrived.load() >= count; }));
}

/// Processes on a ring without timing and on one with it. What all links do is in
/// "tests/support/link_conformance.hpp".
struct RingLinkProcesses : ::testing::TestWithParam<std::string> {
    /// Of two nodes and four ranks, 1 and 3 are on node 1.
    static RingSpec spec(unsigned nodes, unsigned ranks = 0) {
        return {.nodes = nodes, .ranks = ranks, .timing = GetParam()};
    }
    /// Rank 1 dies while it runs node 1's engine.
    static void die_in_the_engine(const TestRing& ring) {
        Child victim([&] {
            const auto own = ring.open();
            RingRank me(own, {1, 1}, {});
            EngineLock lock(*own, 1, 1, me.member.incarnation());
            while (!lock.try_lock()) {
            }
            ::raise(SIGKILL);
        });
        EXPECT_EQ(victim.wait(), -SIGKILL);
    }
};
INSTANTIATE_TEST_SUITE_P(On, RingLinkProcesses, ::testing::Values("none", "scramnet-burst"),
                         test::profile_case_name);

TEST_P(RingLinkProcesses, a_killed_node_is_bypassed_and_holds_nobody_up) {
    TestRing ring(spec(3));
    SharedValue<Signs> signs;
    Child victim([&] {
        RingRank me(ring.open(), {1, 1}, {});
        me.memory.post_word(4, 1);
        gather(*signs, 2);
        me.await(0, 99);  // never
    });
    RingRank a(ring, 0), c(ring, 2);
    gather(*signs, 2);
    a.await(4, 1);
    a.memory.post_word(0, 1);
    a.flush();
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied), 1U);
    ASSERT_EQ(::kill(victim.pid(), SIGKILL), 0);
    victim.wait();
    write_blocks(a, 2000);  // more than a log holds goes round without it
    a.memory.post_word(0, 2);
    c.await(0, 2);
    a.flush();
    EXPECT_FALSE(is_node_alive(*ring.ring(), 1));
    EXPECT_TRUE(eventually([&] {
        a.memory.progress();
        return ring.count(0, LinkCounter::nodes_bypassed) == 1;
    }));
}

TEST_P(RingLinkProcesses, a_killed_node_that_is_started_again_finds_the_memory) {
    TestRing ring(spec(2));
    RingRank a(ring, 0);
    for (std::uint32_t incarnation = 1; incarnation <= 3; ++incarnation) {
        SharedValue<Signs> signs;
        Child child([&] {
            RingRank me(ring.open(), {1, 1}, {});
            me.await(incarnation * 4, incarnation);
            for (std::uint32_t earlier = 1; earlier < incarnation; ++earlier) {
                EXPECT_EQ(me.memory.load(earlier * 4), earlier);
            }
            me.memory.post_word(128, incarnation);
            me.flush();
            gather(*signs, 2);
            me.await(0, 99);  // never
        });
        a.memory.post_word(incarnation * 4, incarnation);
        a.await(128, incarnation);
        gather(*signs, 2);
        child.kill();
    }
}

TEST_P(RingLinkProcesses, a_holder_of_the_engine_that_was_killed_is_taken_over) {
    TestRing ring(spec(2, 4));
    RingRank a(ring, 0), b(ring, 3);
    die_in_the_engine(ring);
    a.memory.post_word(0, 1);
    b.await(0, 1);
}

TEST_P(RingLinkProcesses, a_rank_killed_in_the_engine_can_come_back) {
    TestRing ring(spec(2));
    RingRank a(ring, 0);
    die_in_the_engine(ring);
    RingRank again(ring, 1);
    a.memory.post_word(0, 1);
    again.await(0, 1);
}

TEST_P(RingLinkProcesses, a_process_killed_at_any_moment_leaves_a_node_that_goes_on) {
    TestRing ring(spec(2, 4));
    RingRank a(ring, 0), b(ring, 3);
    std::uint32_t value = 0;
    for (int round = 0; round < 20; ++round) {
        SharedValue<Signs> signs;
        // It goes on counting, since it may die between its first store and the log's record.
        const std::uint32_t first = a.memory.load(256) + 1;
        Child victim([&] {
            RingRank me(ring.open(), {1, 1}, {});
            signs->has_begun = true;
            for (std::uint32_t i = first;; ++i) {
                me.memory.post_word(256, i);
                me.memory.progress();
            }
        });
        EXPECT_TRUE(eventually([&] { return signs->has_begun.load(); }));
        for (int i = 0; i < 200; ++i) {
            a.memory.post_word(0, ++value);
            a.memory.progress();
        }
        ::usleep(static_cast<useconds_t>(37 * round % 500));
        victim.kill();
        a.memory.post_word(0, ++value);
        b.await(0, value);
        a.flush();
        // The dead one's logged writes are everywhere; it may have died between its bank and its
        // log.
        a.await([&] { return b.load(256) - a.memory.load(256) <= 1; });
    }
}

/// As of a card whose host is stopped. (What a wire that takes time does is shown by ranks that
/// nobody runs, in memory_test.cpp.)
TEST(RingLinkProcess, a_stopped_one_has_all_in_its_bank_on_a_wire_that_takes_no_time) {
    TestRing ring({});
    SharedValue<Signs> signs;
    Child stopped([&] {
        RingRank me(ring.open(), {1, 1}, {});
        gather(*signs, 2);
        me.await(0, 1);
        me.flush();
    });
    RingRank a(ring, 0);
    gather(*signs, 2);
    stopped.stop();
    write_blocks(a, 10'000);
    stopped.resume();
    a.memory.post_word(0, 1);
    EXPECT_EQ(stopped.wait(), 0);
}

TEST_P(RingLinkProcesses, a_process_that_slept_through_a_lap_of_the_log_goes_on) {
    TestRing ring(spec(2, 4));
    SharedValue<Signs> signs;
    Child sleeper([&] {
        RingRank me(ring.open(), {1, 1}, {});
        gather(*signs, 2);
        me.await(4, 1);
        me.memory.post_word(8, 1);
        me.flush();
    });
    RingRank a(ring, 0), b(ring, 3);
    gather(*signs, 2);
    // Stopped outside the engine: otherwise the whole node would stop.
    const auto stopped_outside = [&] {
        sleeper.stop();
        if ((ring.slot(1).engine_holder.load() & 0xffffU) != 1 + 1) return true;
        sleeper.resume();
        return false;
    };
    ASSERT_TRUE(eventually(stopped_outside));
    write_blocks(a, 3000, [&] { b.memory.progress(); });
    a.flush();
    const auto applied = ring.count(1, LinkCounter::writes_applied);
    sleeper.resume();
    a.memory.post_word(4, 1);
    a.await(8, 1);
    a.flush();
    EXPECT_EQ(sleeper.wait(), 0);
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied), applied + 1) << "nothing twice";
}

}  // namespace
}  // namespace rmem
