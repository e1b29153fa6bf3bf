// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// A writer that brings its writes itself to nodes that nobody runs.

#include "rmem/link/ring/engine.hpp"
#include "rmem/link/ring/memory.hpp"
#include "rmem/ring/applied.hpp"
#include "tests/support/test_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace rmem {
namespace {

using test::allow_delivery;
using test::in_bank;
using test::kPatienceNs;
using test::RingRank;
using test::still;
using test::TestRing;

/// Three nodes that nobody runs but by calls, and whose writers may bring their writes.
struct RingOutwardOfThree : ::testing::Test {
    RingOutwardOfThree() { allow_delivery(ring); }
    TestRing ring{{.nodes = 3, .timing = "scramnet-burst"}};
    RingRank a{ring, 0, still()}, b{ring, 1, still()}, c{ring, 2, still()};
};

/// Whether all of rank 0's log has come round, as that node knows.
bool has_all(const TestRing& ring, unsigned node = 0) {
    return applied_of(*ring.ring(), node, 0) == ring.ring()->log(0).header().head;
}

TEST_F(RingOutwardOfThree, a_flush_brings_what_is_under_way_to_nodes_that_nobody_runs) {
    for (std::uint32_t i = 1; i <= 20; ++i) {
        a.memory.post_word(64, i);
        ASSERT_TRUE(a.memory.flush(Deadline::in(kPatienceNs))) << i;
        for (const unsigned node : {1U, 2U}) ASSERT_EQ(in_bank(ring, node, 64), i);
    }
}

/// As when a thread of the writer's process has run it, or the flush was kept from the processor.
TEST_F(RingOutwardOfThree, a_flush_brings_what_the_writers_own_engine_has_let_pass) {
    for (std::uint32_t i = 1; i <= 20; ++i) {
        a.memory.post_word(64, i);
        a.memory.post_word(68 + 4 * i, i);
        a.await([&] { return has_all(ring); });
        EXPECT_NE(in_bank(ring, 2, 64), i);
        if (i % 2 == 0) a.memory.post_word(64, i + 100);  // and what is under way
        ASSERT_TRUE(a.memory.flush(Deadline::in(kPatienceNs))) << i;
        for (const unsigned node : {1U, 2U}) {
            EXPECT_EQ(in_bank(ring, node, 64), i % 2 == 0 ? i + 100 : i);
            EXPECT_EQ(in_bank(ring, node, 68 + 4 * i), i);
        }
    }
    EXPECT_EQ(ring.count(1, LinkCounter::writes_applied), 50U);
    EXPECT_EQ(ring.slot(1).propagation.count(), 50U);
    EXPECT_GE(ring.count(1, LinkCounter::late_by_host), 40U) << "nobody ran its engine";
}

/// Another may have written the word before: it would be stored over this write when its node runs.
TEST_F(RingOutwardOfThree, a_flush_does_not_overtake_what_others_wrote_before) {
    a.memory.post_word(64, 1);
    b.await(64, 1);
    b.memory.post_word(64, 2);
    EXPECT_FALSE(b.memory.flush(Deadline::in(5'000'000))) << "nobody runs nodes 0 and 2";
    a.await(64, 2);
    c.await(64, 2);
    c.await([&] { return has_all(ring, 2); });
    EXPECT_EQ(in_bank(ring, 2, 64), 2U);
    EXPECT_TRUE(b.memory.flush(Deadline::in(kPatienceNs)));
}

/// To others something may have been posted, or they have words of users from others to store.
TEST(RingOutward, only_nodes_that_sleep_are_brought_messages_and_nothing_behind_words_of_users) {
    constexpr std::size_t kUser = 65536;
    TestRing ring(
        {.nodes = 2, .timing = "scramnet-burst", .user_bytes = kUser, .system_bytes = 4096});
    RingRank a(ring, 0, still()), b(ring, 1, still());
    allow_delivery(ring);
    const auto b_has = [&] { return applied_of(*ring.ring(), 1, 0); };
    const auto write_many = [&] {
        for (std::uint32_t i = 1; i <= 320; ++i) {
            a.wait_for_room(4);
            a.memory.post_word(kUser + 64, i);
            if (i % 64 == 0) a.await([&] { return has_all(ring); });
        }
    };
    const std::uint64_t before = b_has();
    write_many();
    EXPECT_EQ(b_has(), before) << "its rank is awake";
    ring.ring()->attention()[1] = kAttentionAsleep;
    write_many();
    const std::uint64_t brought = b_has();
    EXPECT_GT(brought, before + 320);
    a.memory.post_word(64, 1);
    write_many();
    EXPECT_EQ(b_has(), brought) << "it lacks a word of users";
    b.await(kUser + 64, 320);
    EXPECT_EQ(in_bank(ring, 1, 64), 1U);
}

/// It may be about to store a write that was not claimed when it looked: brought by its writer, and
/// followed by the next, that would be undone.
TEST(RingOutward, a_flush_takes_no_write_out_of_the_hands_of_a_running_engine) {
    TestRing ring({.nodes = 2, .timing = "scramnet-burst"});
    RingRank a(ring, 0, still()), b(ring, 1, still());
    allow_delivery(ring);
    auto& holder = ring.slot(1).engine_holder;
    const std::uint32_t as_b = b.member.incarnation() << 16 | (1 + b.member.rank());
    for (const bool has_passed : {false, true}) {
        holder = as_b;
        a.memory.post_word(64, 7);
        if (has_passed) a.await([&] { return has_all(ring); });
        EXPECT_FALSE(a.memory.flush(Deadline::in(5'000'000)));
        EXPECT_EQ(in_bank(ring, 1, 64), 0U);
        EXPECT_EQ(holder, as_b);
        holder = 0;
        EXPECT_TRUE(a.memory.flush(Deadline::in(kPatienceNs)));
        EXPECT_EQ(in_bank(ring, 1, 64), 7U);
        a.memory.post_word(64, 0);
        EXPECT_TRUE(a.memory.flush(Deadline::in(kPatienceNs)));
    }
}

}  // namespace
}  // namespace rmem
