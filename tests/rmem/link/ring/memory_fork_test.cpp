// SPDX-License-Identifier: Apache-2.0

/// A memory of link ring in a forked child: it is the parent's.

#include "tests/support/child.hpp"
#include "tests/support/test_ring.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace rmem {
namespace {

using test::RingRank;
using test::still;
using test::TestRing;

/// Without helpers nobody else changes what is compared.
TEST(RingMemoryFork, is_left_to_the_parent_by_a_child_that_destroys_it) {
    TestRing ring({.nodes = 2});
    auto a = std::make_unique<RingRank>(ring, 0, still());
    RingRank b(ring, 1, still());
    a->memory.post_word(0, 1);
    const std::uint64_t flushes = ring.rank_count(0, LinkCounter::flushes);
    const auto present = ring.slot(0).present.load(), resident = ring.slot(0).resident[0].load();
    ASSERT_NE(resident, 0U);
    b.await(0, 1);  // so that nothing keeps a flush waiting
    test::Child child([&] { a.reset(); });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(ring.rank_count(0, LinkCounter::flushes), flushes);
    EXPECT_EQ(ring.slot(0).present.load(), present);
    EXPECT_EQ(ring.slot(0).resident[0].load(), resident);
    b.memory.post_word(64, 2);
    a->await(64, 2);
    EXPECT_TRUE(ring.ring()->is_alive(0));
}

}  // namespace
}  // namespace rmem
