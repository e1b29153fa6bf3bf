// SPDX-License-Identifier: Apache-2.0

/// Packets that meet while one grows, is lost, or lies in a failing node: nothing overtakes, and
/// nothing vanishes without a word.

#include "tests/rmem/wire/model_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rmem {
namespace {

TEST(WireModelOrder, a_growing_packet_takes_no_more_words_once_another_waits_behind_it) {
    Bench b("scramnet-burst-plus", 3);
    const std::uint64_t begun = b.write_at(0, 0, 0);
    const std::uint64_t passing = b.write(2, 100);  // at node 0 from 347, where it waits until 547
    const std::uint64_t second = b.write_at(0, 200, 4);
    const std::uint64_t third = b.write_at(0, 300, 8);
    b.drain();
    EXPECT_EQ(b.arrival(1, begun), 547);
    EXPECT_EQ(b.arrival(1, passing), 2 * 547);
    EXPECT_GE(b.arrival(1, second), 3 * 547) << "a packet of its own, behind the one that waited";
    EXPECT_EQ(b.arrival(1, third), b.arrival(1, second) + 240);
    EXPECT_EQ(b.model.counters(0).sent, 2u);
}

TEST(WireModelOrder, what_is_stored_behind_a_growing_packet_that_was_lost_is_reported_too) {
    Bench b("scramnet-burst-plus", 4);
    b.model.set_cable(0, 1, false, 0);
    b.model.set_cable(1, 1, false, 0);
    const std::uint64_t first = b.write_at(0, 10, 0);
    const std::uint64_t second =
        b.write_at(0, 400, 4);  // the first is lost since 257, and still sent
    b.drain();
    for (const std::uint64_t tag : {first, second}) {
        EXPECT_NE(b.arrival(1, tag), -1) << "write " << tag;
        EXPECT_EQ(b.arrival(2, tag), -1) << "write " << tag;
        EXPECT_NE(b.time_of(Kind::lost, 1, tag), -1) << "write " << tag;
        EXPECT_EQ(b.time_of(Kind::returned, 0, tag), -1) << "write " << tag;
    }
    EXPECT_EQ(b.count(Kind::lost), 2u);
    EXPECT_EQ(b.model.counters(0).lost_cable, 2u);
}

TEST(WireModelOrder, packets_in_a_failing_nodes_register_go_on_from_then_and_in_their_order) {
    Bench b("gt200", 4);
    // A packet of four writes and one of another, both whole in node 1, whose delay is 450 ns.
    std::vector<std::uint64_t> tags;
    for (std::uint64_t n = 0; n < 4; ++n) tags.push_back(b.write_at(0, 0, 4 * n));
    tags.push_back(b.write(0, 0));
    constexpr std::int64_t kFails = 790;
    b.model.set_alive(1, false, kFails);
    b.drain();
    EXPECT_EQ(b.model.counters(0).sent, 2u);
    EXPECT_EQ(b.count(Kind::lost), 0u);
    for (const std::uint16_t node : {std::uint16_t{2}, std::uint16_t{3}}) {
        std::int64_t before = kFails;
        for (const std::uint64_t tag : tags) {
            EXPECT_GT(b.arrival(node, tag), before) << "write " << tag << " at node " << node;
            before = b.arrival(node, tag);
        }
    }
}

}  // namespace
}  // namespace rmem
