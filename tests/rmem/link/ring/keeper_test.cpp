// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/link/ring/keeper.hpp"

#include "rmem/ring/bank.hpp"
#include "rmem/ring/membership.hpp"
#include "tests/rmem/link/ring/ring_fixture.hpp"

#include <csignal>

namespace rmem {
namespace {

using test::Child;
using test::eventually;
using test::in_bank;
using test::kPatienceNs;
using test::RingRank;
using test::RingSpec;
using test::TestRing;

/// Each test runs on a ring without timing, and on one with: node 0 has a program, 1 is kept, and
/// of the others, which have ranks, too, nobody has heard.
struct NodeKeeperTest : ::testing::TestWithParam<std::string> {
    TestRing ring{{.nodes = 4, .timing = GetParam(), .user_bytes = 65536, .system_bytes = 4096}};
    std::optional<NodeKeeper> keeper{std::in_place, ring.ring(), 1U, RingOptions{}};
    RingRank a{ring, 0};

    bool comes_to(unsigned node, std::size_t offset, std::uint32_t value) {
        return eventually([&] { return in_bank(ring, node, offset) == value; });
    }
    void write(std::size_t offset, std::uint32_t value) {
        a.wait_for_room(4);
        a.memory.post_word(offset, value);
        a.memory.commit();
    }
};
INSTANTIATE_TEST_SUITE_P(On, NodeKeeperTest, ::testing::Values("none", "scramnet-burst"),
                         test::profile_case_name);

TEST_P(NodeKeeperTest, a_kept_node_receives_while_no_program_runs) {
    for (std::uint32_t round = 1; round <= 3; ++round) {
        write(64, round);
        EXPECT_TRUE(comes_to(1, 64, round));
        test::stay_away(30'000'000);  // its engine's thread sleeps
    }
    EXPECT_TRUE(a.memory.flush(Deadline::in(kPatienceNs)));
}

TEST_P(NodeKeeperTest, a_writer_goes_on_when_the_log_comes_round) {
    test::write_blocks(a, 4 * kLogBytes / 1024);
    write(64, 7);
    EXPECT_TRUE(comes_to(1, 64, 7));
}

TEST_P(NodeKeeperTest, a_program_that_comes_goes_on_where_the_bank_is) {
    write(64, 1);
    ASSERT_TRUE(comes_to(1, 64, 1));
    const std::uint32_t present = ring.ring()->node(1).present.load();
    {
        RingRank b(ring, 1);
        EXPECT_EQ(b.memory.load(64), 1U);
        EXPECT_EQ(ring.ring()->node(1).present.load(), present) << "its bank was copied again";
        b.wait_for_room(4);
        b.memory.post_word(68, 2);
        b.memory.commit();
        a.await(68, 2);
        write(64, 3);
        b.await(64, 3);
    }
    write(64, 4);
    EXPECT_TRUE(comes_to(1, 64, 4)) << "the program has left";
    EXPECT_TRUE(comes_to(1, 68, 2));
}

TEST_P(NodeKeeperTest, a_node_that_is_first_taken_in_by_its_keeper_has_what_was_written_before) {
    write(64, 1);
    ASSERT_TRUE(a.memory.flush(Deadline::in(kPatienceNs)));
    const NodeKeeper other(ring.ring(), 2, {});
    EXPECT_EQ(in_bank(ring, 2, 64), 1U);
}

TEST_P(NodeKeeperTest, nobody_waits_for_a_node_whose_keeper_has_left) {
    keeper.reset();
    test::write_blocks(a, 2 * kLogBytes / 1024);
    EXPECT_TRUE(a.memory.flush(Deadline::in(kPatienceNs)));
    write(64, 5);
    keeper.emplace(ring.ring(), 1U, RingOptions{});
    EXPECT_TRUE(comes_to(1, 64, 5)) << "the next one has what was written meanwhile";
}

TEST_P(NodeKeeperTest, what_a_killed_program_had_stored_is_sent) {
    Child program([&] {
        const auto mine = ring.open();
        const Membership member(mine, {1, 1});
        const LogWriter log(mine->log(1));
        const Applying applying({*mine, mine->rank(1).writer}, 64, 1, kWholeWord, log.head());
        store_word(mine->bank(1) + 64, 9);
        ::raise(SIGSTOP);
    });
    program.await_stop();
    EXPECT_EQ(in_bank(ring, 0, 64), 0U);
    program.kill();
    EXPECT_TRUE(eventually([&] {
        keeper->look();
        return in_bank(ring, 0, 64) == 9;
    }));
}

TEST_P(NodeKeeperTest, a_kept_node_is_present_and_has_one_keeper) {
    EXPECT_TRUE(ring.ring()->is_present(0));
    EXPECT_TRUE(ring.ring()->is_present(1));
    EXPECT_FALSE(ring.ring()->is_present(2));
    EXPECT_EQ(ring.ring()->joined_ranks(), 1U);
    EXPECT_THROW(NodeKeeper(ring.ring(), 1, {}), Error);
    keeper.reset();
    EXPECT_FALSE(ring.ring()->is_present(1));
}

TEST(NodeKeeper, on_direct_a_node_counts_as_present_while_it_is_kept) {
    TestRing ring{RingSpec{.link = LinkKind::direct}};
    {
        const NodeKeeper keeper(ring.ring(), 1, {});
        EXPECT_TRUE(ring.ring()->is_present(1));
    }
    EXPECT_FALSE(ring.ring()->is_present(1));
}

}  // namespace
}  // namespace rmem
