// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/rest.hpp"

#include "tests/support/child.hpp"

#include <gtest/gtest.h>

namespace rmem::udp {
namespace {

class RestTest : public ::testing::Test {
protected:
    test::RingName name;
    std::shared_ptr<Ring> ring =
        Ring::open(name.config(2, LinkKind::udp), Deadline::in(1'000'000'000), 0);
    Rest rest{*ring};
};

TEST_F(RestTest, is_counted_on_the_board_and_ended_by_the_bell) {
    rest.begin(true);
    EXPECT_EQ(ring->board().asleep.load(), 1U);
    rest.interrupt();
    rest.wait(3'600'000'000'000, 0, -1);
    EXPECT_EQ(ring->board().asleep.load(), 0U);
    rest.begin(false);
    rest.wait(1, 0, -1);
    rest.begin(false);
    rest.wait(0, 1, -1);
    EXPECT_EQ(ring->board().asleep.load(), 0U);
}

TEST_F(RestTest, rings_the_bell_for_a_rank_that_sleeps_when_it_is_to_look) {
    EXPECT_FALSE(rest.lie_down());
    EXPECT_TRUE(rest.sleeps());
    rest.call_to_look();
    rest.begin(false);
    rest.wait(3'600'000'000'000, 0, -1);
    rest.get_up();
    EXPECT_TRUE(rest.take_call());
    EXPECT_FALSE(rest.take_call());
    EXPECT_TRUE(rest.lie_down()) << "in the same wait";
    rest.get_up();
    EXPECT_TRUE(rest.take_slept());
    EXPECT_FALSE(rest.take_slept());
    EXPECT_FALSE(rest.lie_down());
}

TEST_F(RestTest, takes_what_comes_in_a_nap_together_once_it_is_over) {
    EXPECT_FALSE(rest.take_nap(5));
    rest.nap_until(10);
    EXPECT_EQ(rest.nap_ns(4), 6);
    EXPECT_TRUE(rest.take_nap(9));
    EXPECT_TRUE(rest.take_nap(10));
    EXPECT_FALSE(rest.take_nap(11));
    EXPECT_FALSE(rest.naps());
    rest.nap_until(now_ns() + 3'600'000'000'000);
    EXPECT_TRUE(rest.naps());
    rest.lie_down();
    EXPECT_TRUE(rest.take_slept()) << "its wait is over";
    EXPECT_FALSE(rest.naps());
}

TEST_F(RestTest, tells_one_that_stands_by_for_long_once) {
    EXPECT_FALSE(rest.take_stand_by(0)) << "nobody does";
    rest.stand_by_until(10 + Rest::kTailNs);
    EXPECT_FALSE(rest.take_stand_by(10)) << "it comes by itself";
    EXPECT_TRUE(rest.take_stand_by(9));
    EXPECT_FALSE(rest.take_stand_by(9));
}

// ---- Crowds

constexpr std::int64_t kSecond = 1'000'000'000;

class CrowdTest : public ::testing::Test {
protected:
    unsigned here = 1, counts = 0;
    Crowd crowd{16, 4, [this] {
                    ++counts;
                    return here;
                }};
};

TEST_F(CrowdTest, is_none_where_each_node_of_the_ring_has_a_processor) {
    here = 4;
    Crowd small(4, 4, [this] { return ++counts; });
    EXPECT_EQ(small.find_turn(4, 0), 0);
    EXPECT_EQ(small.nap_ns(0), 0);
    EXPECT_EQ(counts, 0U) << "there was nothing to count for";
    EXPECT_EQ(crowd.find_turn(16, 0), 0) << "most nodes are elsewhere";
    EXPECT_EQ(crowd.nap_ns(0), 0);
}

TEST_F(CrowdTest, gives_each_node_a_turn_the_longer_the_more_join) {
    here = 5;
    EXPECT_EQ(crowd.find_turn(0, 0), 0);
    EXPECT_EQ(crowd.find_turn(1, 0), Crowd::kTurnNs * 16 / Crowd::kMax);
    EXPECT_EQ(crowd.find_turn(16, 0), Crowd::kTurnNs * 16);
    EXPECT_EQ(crowd.turn_ns(), Crowd::kTurnNs * 16);
    EXPECT_EQ(crowd.nap_ns(0), Crowd::kNapNs * 5);
}

TEST_F(CrowdTest, lets_what_comes_wait_for_the_next_turn) {
    EXPECT_TRUE(crowd.take_turn(0) && crowd.take_turn(0));
    here = 16;
    const std::int64_t turn = crowd.find_turn(8, 0);
    EXPECT_TRUE(crowd.take_turn(0));
    EXPECT_FALSE(crowd.take_turn(turn - 1));
    EXPECT_TRUE(crowd.take_turn(turn));
    crowd.find_turn(0, turn);
    EXPECT_TRUE(crowd.take_turn(turn + 1)) << "nobody joins any more";
}

TEST_F(CrowdTest, counts_the_nodes_here_now_and_then) {
    here = 16;
    for (std::int64_t now = 0; now < kSecond / 100; now += 1'000) crowd.find_turn(1, now);
    EXPECT_EQ(counts, 1U);
    here = 1;
    EXPECT_NE(crowd.find_turn(1, kSecond / 100), 0) << "they are not counted again yet";
    EXPECT_EQ(crowd.find_turn(1, 2 * kSecond), 0);
}

}  // namespace
}  // namespace rmem::udp
