// SPDX-License-Identifier: Apache-2.0
//
// What the matching engine does where its callers go wrong, or everybody has gone.
#include "mpi_channel/device/matching.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

namespace mpi_channel {
namespace {

TEST(MatchingEdges, a_receive_whose_used_is_not_reset_writes_nothing_outside_of_its_buffer) {
    Matcher matcher(2);
    Placement placement;
    Receive receive;
    receive.wanted = {1, 0, 0};
    receive.capacity = 20;
    receive.used = 50;
    EXPECT_EQ(matcher.post(receive, placement), nullptr);
    const auto match = matcher.arrive({1, 0, 1000});
    ASSERT_TRUE(match);
    EXPECT_EQ(match->placement.bytes, 0U);
    EXPECT_TRUE(match->placement.cut);
    EXPECT_TRUE(match->placement.last);
}

TEST(MatchingEdges, receives_of_any_source_are_taken_in_their_order_when_nobody_is_left) {
    Matcher matcher(2);
    Placement placement;
    Receive first, named, second;
    named.wanted.source = 1;
    for (Receive* receive : {&first, &named, &second}) {
        EXPECT_EQ(matcher.post(*receive, placement), nullptr);
    }
    EXPECT_EQ(matcher.take_hopeless(kAnySource), &first);
    EXPECT_EQ(matcher.take_hopeless(kAnySource), &second);
    EXPECT_EQ(matcher.take_hopeless(kAnySource), nullptr);
    EXPECT_EQ(matcher.posted(), 1U);
    EXPECT_EQ(matcher.take_hopeless(1), &named);
}

TEST(MatchingEdges, a_message_claimed_is_placed_as_any) {
    Receive receive;
    receive.capacity = 10;
    const Placement placement = Matcher::place(receive, 25);
    EXPECT_EQ(placement.bytes, 10U);
    EXPECT_TRUE(placement.cut);
    EXPECT_TRUE(placement.last);
}

TEST(MatcherDeathTest, checks_that_nothing_is_in_it_twice) {
    Matcher matcher(2);
    Message first;
    first.envelope = {1, 0, 8};
    matcher.keep(first);
    EXPECT_BROKEN(matcher.keep(first));
    Message unknown;
    unknown.envelope = {2, 0, 8};
    EXPECT_BROKEN(matcher.keep(unknown));
    matcher.claim(first);
    EXPECT_BROKEN(matcher.claim(first));
    EXPECT_BROKEN(static_cast<void>(matcher.peek({.source = 2})));
    Receive receive;
    Placement placement;
    ASSERT_EQ(matcher.post(receive, placement), nullptr);
    EXPECT_BROKEN(static_cast<void>(matcher.post(receive, placement)));
}

}  // namespace
}  // namespace mpi_channel
