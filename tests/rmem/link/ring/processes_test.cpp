// SPDX-License-Identifier: Apache-2.0
// ctest: check
#include "rmem/link/ring/memory.hpp"
#include "rmem/ring/membership.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_ring.hpp"

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <vector>

namespace rmem {
namespace {

using test::Child;
using test::eventually;
using test::RingRank;
using test::RingSpec;
using test::SharedValue;
using test::TestRing;

/// The signals between parent and children beside the ring.
struct Signs {
    std::atomic<std::uint32_t> arrived{0};
    std::atomic<std::uint32_t> sign[8]{};
};

void gather(Signs& signs, std::uint32_t count) {
    signs.arrived.fetch_add(1);
    EXPECT_TRUE(eventually([&] { return signs.arrived.load() >= count; }));
}

/// Processes on a ring without timing and on one with it.
struct RingLinkProcesses : ::testing::TestWithParam<const char*> {
    static RingSpec spec(unsigned nodes) { return {.nodes = nodes, .timing = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(On, RingLinkProcesses, ::testing::Values("none", "scramnet-burst"),
                         [](const auto& test) {
                             return std::string(test.param) == "none" ? "none" : "scramnet_burst";
                         });

TEST_P(RingLinkProcesses, four_processes_see_each_nodes_writes_in_order_under_load) {
    TestRing ring(spec(4));
    SharedValue<Signs> signs;
    constexpr std::uint32_t kLast = 3000;
    std::vector<Child> children;
    for (unsigned n = 0; n < 4; ++n) {
        children.emplace_back([&, n] {
            RingRank me(ring.open(), {n, n}, {});
            gather(*signs, 4);
            std::uint32_t seen[4] = {};
            const auto look = [&] {
                for (unsigned other = 0; other < 4; ++other) {
                    const std::uint32_t flag = me.memory.load(other * 256);
                    ASSERT_GE(flag, seen[other]);
                    seen[other] = flag;
                    ASSERT_GE(me.memory.load(other * 256 + 4), flag)
                        << "a flag came before its data";
                }
            };
            for (std::uint32_t i = 1; i <= kLast; ++i) {
                me.wait_for_room(8);
                me.memory.write(n * 256 + 4, &i, 4);
                me.memory.post_word(n * 256, i);
                me.memory.progress();
                look();
            }
            for (unsigned other = 0; other < 4; ++other) me.await(other * 256, kLast);
            gather(*signs, 8);
        });
    }
    for (auto& child : children) EXPECT_EQ(child.wait(), 0);
    for (unsigned n = 0; n < 4; ++n) {
        EXPECT_EQ(ring.count(n, LinkCounter::writes_applied), 3U * 2 * kLast);
    }
}

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
    // More than a log holds goes round without it.
    const std::vector<std::byte> block(1024);
    for (int i = 0; i < 2000; ++i) {
        a.wait_for_room(1024);
        a.memory.write(1024, block.data(), 1024);
    }
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
    RingSpec shared = spec(2);
    shared.ranks = 4;  // ranks 1 and 3 share node 1
    TestRing ring(shared);
    RingRank a(ring, 0), b(ring, 3);
    Child victim([&] {
        const auto own = ring.open();
        RingRank me(own, {1, 1}, {});
        EngineLock lock(*own, 1, 1, me.member.incarnation());
        while (!lock.try_lock()) {
        }
        ::raise(SIGKILL);
    });
    EXPECT_EQ(victim.wait(), -SIGKILL);
    a.memory.post_word(0, 1);
    b.await(0, 1);
}

TEST_P(RingLinkProcesses, a_rank_killed_in_the_engine_can_come_back) {
    TestRing ring(spec(2));
    RingRank a(ring, 0);
    Child victim([&] {
        const auto own = ring.open();
        RingRank me(own, {1, 1}, {});
        EngineLock lock(*own, 1, 1, me.member.incarnation());
        while (!lock.try_lock()) {
        }
        ::raise(SIGKILL);
    });
    EXPECT_EQ(victim.wait(), -SIGKILL);
    RingRank again(ring, 1);
    a.memory.post_word(0, 1);
    again.await(0, 1);
}

TEST_P(RingLinkProcesses, a_process_killed_at_any_moment_leaves_a_node_that_goes_on) {
    RingSpec shared = spec(2);
    shared.ranks = 4;
    TestRing ring(shared);
    RingRank a(ring, 0), b(ring, 3);
    std::uint32_t value = 0;
    for (int round = 0; round < 20; ++round) {
        SharedValue<Signs> signs;
        // It goes on counting, since it may die between its first store and the log's record.
        const std::uint32_t first = a.memory.load(256) + 1;
        Child victim([&] {
            RingRank me(ring.open(), {1, 1}, {});
            signs->sign[0] = 1;
            for (std::uint32_t i = first;; ++i) {
                me.memory.post_word(256, i);
                me.memory.progress();
            }
        });
        EXPECT_TRUE(eventually([&] { return signs->sign[0].load() != 0; }));
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

TEST_P(RingLinkProcesses, a_stopped_node_loses_nothing) {
    TestRing ring(spec(2));
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
    const std::vector<std::byte> block(1024);
    const auto room_in_time = [&] {
        const std::int64_t end = now_ns() + 20'000'000;
        for (int tries = 0; tries < 1000 || now_ns() < end; ++tries) {
            a.memory.progress();
            if (a.memory.room(1024)) return true;
        }
        return false;
    };
    int sent = 0;
    while (sent < 10'000 && room_in_time()) {
        a.memory.write(1024, block.data(), 1024);
        ++sent;
    }
    if (std::string(GetParam()) == "none") {
        EXPECT_EQ(sent, 10'000) << "its bank has them, as a card whose host is stopped";
    } else {
        EXPECT_LT(sent, 2000) << "a stopped node is alive: the log is not reused";
    }
    stopped.resume();
    a.wait_for_room(1024);
    a.memory.post_word(0, 1);
    EXPECT_EQ(stopped.wait(), 0);
}

TEST_P(RingLinkProcesses, a_process_that_slept_through_a_lap_of_the_log_goes_on) {
    RingSpec shared = spec(2);
    shared.ranks = 4;  // ranks 1 and 3 share node 1
    TestRing ring(shared);
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
    const std::vector<std::byte> block(1024);
    for (int i = 0; i < 3000; ++i) {
        a.wait_for_room(1024);
        a.memory.write(1024, block.data(), 1024);
        b.memory.progress();
    }
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
