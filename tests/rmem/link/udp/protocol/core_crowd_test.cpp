// SPDX-License-Identifier: Apache-2.0

/// Many nodes that start at a time on few processors: each has its turn seldom, and many datagrams
/// wait for it then.

#include "tests/rmem/link/udp/protocol/core_fixture.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rmem::udp {
namespace {

TEST(CoreInACrowd, a_node_whose_timers_are_late_forms_no_ring_for_it) {
    Ring ring(2);
    Ring::Node& node = ring.start(1);
    const std::int64_t away_ns = 3 * kFormNs;
    ring.pause(1, ring.now + away_ns);
    ring.run(away_ns + kFormNs / 2);
    EXPECT_FALSE(node.core.is_member()) << "others may have spoken while it had no processor";
    EXPECT_TRUE(ring.run_until([&] { return node.core.is_member(); }, kFormNs));
}

TEST(CoreInACrowd, joins_are_rarer_where_more_would_answer_each) {
    const auto joins_of = [](unsigned nodes) {
        Ring ring(nodes);
        ring.start(nodes - 1);
        ring.run(kFormNs - kMillisecond);
        return ring[nodes - 1].core.counters().joins_sent;
    };
    EXPECT_EQ(joins_of(2), joins_of(8));
    EXPECT_LT(joins_of(64), joins_of(8));
    EXPECT_GE(joins_of(64), 2U);
}

TEST(CoreInACrowd, those_that_join_are_counted_until_shortly_after) {
    constexpr unsigned kNodes = 6;
    Ring ring(kNodes);
    ring.start(0);
    ASSERT_TRUE(ring.becomes_member(0));
    EXPECT_EQ(ring[0].core.joiners(ring.now), 0U);
    for (unsigned n = 1; n < kNodes; ++n) ring.start(n);
    ASSERT_TRUE(ring.becomes_whole());
    EXPECT_EQ(ring[0].core.joiners(ring.now), kNodes - 1);
    ring.run(2 * kFormNs);
    EXPECT_EQ(ring[0].core.joiners(ring.now), 0U);
}

TEST(CoreInACrowd, members_that_have_written_nothing_are_not_acknowledged_one_by_one) {
    constexpr unsigned kNodes = 12;
    WholeRing ring(kNodes);
    ring.run(100 * kMillisecond);
    std::uint64_t alone = 0;
    for (unsigned n = 0; n < kNodes; ++n) alone += ring[n].core.exchange().counters().acks_alone;
    EXPECT_EQ(alone, 0U) << "each would be heard by all";
}

/// What the others have sent to the donor since it looked last, all at once.
void give_all(Ring& ring, unsigned node, const std::vector<std::vector<std::byte>>& datagrams) {
    for (const auto& datagram : datagrams) {
        if (Header::read(datagram.data()).origin != node)
            ring[node].core.on_datagram(datagram, ring.now);
    }
}

TEST(CoreInACrowd, what_many_ask_is_answered_together_when_all_is_read) {
    constexpr unsigned kNodes = 6;
    Ring ring(kNodes);
    ring.start(0);
    ASSERT_TRUE(ring.becomes_member(0));
    for (unsigned n = 1; n < kNodes; ++n) ring.start(n);
    ASSERT_TRUE(ring.becomes_whole());
    // The last one starts again: its joins, and what the others write meanwhile, come at once.
    ring.kill(kNodes - 1);
    ring.run(300 * kMillisecond);
    ring.records = true;
    ring.is_cut = [](unsigned from, unsigned to) { return from == 0 || to == 0; };
    ring.start(kNodes - 1);
    for (unsigned n = 1; n + 1 < kNodes; ++n) ring.write_something(n);
    ring.run(20 * kMillisecond);
    const auto sent = [&] { return ring[0].core.exchange().counters().datagrams_sent; };
    const std::uint64_t before = sent();
    ring[0].core.hold_answers(true);
    give_all(ring, 0, ring.recorded);
    ring[0].core.hold_answers(false);
    EXPECT_EQ(sent(), before) << "while more is to be read";
    EXPECT_LE(ring[0].core.due_ns(), ring.now);
    ring[0].core.on_tick(ring.now);
    EXPECT_GT(sent(), before);
    EXPECT_LE(sent(), before + 4) << "greetings, admissions, acknowledgements, a status";
}

}  // namespace
}  // namespace rmem::udp
