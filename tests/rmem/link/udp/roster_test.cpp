// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/roster.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

namespace rmem::udp {
namespace {

class RosterTest : public ::testing::Test {
protected:
    RankState state(unsigned rank) const {
        return static_cast<RankState>(ring->rank(rank).state.load());
    }

    test::RingName name;
    std::shared_ptr<Ring> ring =
        Ring::open(name.config(4, LinkKind::udp), Deadline::in(1'000'000'000), 0);
    Roster roster{*ring, 0};
};

TEST_F(RosterTest, a_word_is_read_as_it_was_made) {
    const RosterEntry read = RosterEntry::read(RosterEntry{true, 255, 0x7fffff}.word());
    EXPECT_TRUE(read.joined);
    EXPECT_EQ(read.node, 255U);
    EXPECT_EQ(read.incarnation, 0x7fffffU);
    EXPECT_FALSE(RosterEntry::read(RosterEntry{false, 3, 1}.word()).joined);
}

TEST_F(RosterTest, a_rank_of_another_node_is_elsewhere_until_it_leaves) {
    roster.store(2, {true, 2, 5});
    roster.applied(roster.offset_of(2), 1);
    EXPECT_EQ(state(2), RankState::elsewhere);
    EXPECT_EQ(ring->rank(2).incarnation, 5U);
    EXPECT_EQ(state(3), RankState::absent) << "nobody spoke of it";
    roster.store(2, {false, 2, 5});
    roster.applied(roster.offset_of(2), 1);
    EXPECT_EQ(state(2), RankState::left);
}

TEST_F(RosterTest, ranks_of_a_node_that_is_not_there_any_more_are_lost) {
    for (const unsigned rank : {1U, 2U}) roster.store(rank, {true, rank, 1});
    roster.applied(roster.offset_of(0), 4);
    roster.lose_unless([](unsigned node) { return node == 1; });
    EXPECT_EQ(state(1), RankState::elsewhere);
    EXPECT_EQ(state(2), RankState::lost);
}

TEST_F(RosterTest, of_a_bank_that_is_new_only_ranks_within_reach_are_there) {
    for (const unsigned rank : {1U, 2U}) roster.store(rank, {true, rank, 1});
    roster.read_all([](unsigned node) { return node == 2; });
    EXPECT_EQ(state(1), RankState::lost);
    EXPECT_EQ(state(2), RankState::elsewhere);
}

TEST_F(RosterTest, a_rank_of_this_host_is_not_taken_by_what_another_node_writes) {
    const Membership here(ring, {1, 0});
    roster.store(1, {true, 3, 9});
    roster.applied(roster.offset_of(1), 1);
    EXPECT_EQ(state(1), RankState::joined);
    EXPECT_EQ(here.incarnation(), 1U);
}

TEST_F(RosterTest, notices_a_rank_outside_the_ring) {
    EXPECT_BROKEN(static_cast<void>(roster.offset_of(4)));
}

}  // namespace
}  // namespace rmem::udp
