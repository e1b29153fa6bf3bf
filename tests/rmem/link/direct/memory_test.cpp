// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/direct/memory.hpp"

#include "rmem/node.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

namespace rmem {
namespace {

using test::RingName;

std::shared_ptr<Ring> ring_named(const RingName& name) {
    return Ring::open(name.config(), Deadline::in(kDefaultJoinTimeoutNs));
}

TEST(DirectMemory, counts_the_messages_that_it_samples) {
    const RingName name;
    Membership member(ring_named(name), {0, 0});
    DirectMemory memory(member);
    memory.post_word(64, 1);
    EXPECT_EQ(member.slot().link.get(LinkCounter::messages_sampled), 0U);
    memory.stamp(64, 2);
    memory.stamp(64, 3);
    EXPECT_EQ(member.slot().link.get(LinkCounter::messages_sampled), 2U);
}

TEST(DirectMemory, counts_a_cards_writes_as_such_and_not_as_messages) {
    const RingName name;
    const auto ring = ring_named(name);
    Node node(ring, {0, 0});
    for (unsigned i = 0; i < 3 * kStampEvery; ++i)
        EXPECT_EQ(node.write_word(64, i), WriteResult::ok);
    EXPECT_EQ(ring->rank(0).link.get(LinkCounter::messages_sampled), 0U);
    EXPECT_EQ(ring->rank(0).link.get(LinkCounter::writes_sent), 3U * kStampEvery);
}

}  // namespace
}  // namespace rmem
