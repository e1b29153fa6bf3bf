// SPDX-License-Identifier: Apache-2.0

/// Packets that meet while one grows, is lost, or lies in a failing node: nothing overtakes, and
/// nothing vanishes without a word. And what the model tells of arrivals before they come.

#include "rmem/base/random.hpp"
#include "tests/rmem/wire/model_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
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

// ---- Arrivals that are told in advance

TEST(WireModel, an_arrival_is_told_in_advance_as_it_will_come) {
    constexpr std::uint16_t kNodes = 5, kHere = 2, kOrigin = 4;
    for (const char* profile : {"scramnet-burst", "scramnet-burst-plus", "gt200"}) {
        Bench b(profile, kNodes);
        Random random(11);
        std::optional<WireOutcome> told;
        std::size_t tellings = 0;
        std::int64_t now = 0;
        const auto is_meant = [&](const WireOutcome& o) {
            return o.kind == Kind::arrived && (o.node == kHere || o.origin == kOrigin);
        };
        for (int round = 0; round < 20'000; ++round) {
            now += static_cast<std::int64_t>(random.below(400));
            if (round == 9'000) b.model.set_alive(1, false, now + 150);
            if (round == 12'000) b.model.set_alive(1, true, now + 150);
            if (round % 4 == 0) {
                const auto origin = static_cast<std::uint16_t>(random.below(kNodes));
                b.write(origin, now, 4 * (1 + static_cast<std::uint32_t>(random.below(8))));
            }
            const std::int64_t until = now + 400;
            b.outcomes.clear();
            b.advance(now);
            if (told && told->time_ns <= now) {
                EXPECT_EQ(b.time_of(Kind::arrived, told->node, told->tag), told->time_ns);
                told.reset();
            }
            if (!told) {
                told = b.model.next_arrival(kHere, kOrigin, until);
                if (!told) continue;
                EXPECT_TRUE(is_meant(*told));
                EXPECT_LE(told->time_ns, until);
                ++tellings;
            }
        }
        EXPECT_GT(tellings, 500U) << profile;
    }
}

TEST(WireModel, no_arrival_is_told_behind_a_fault) {
    Bench b("scramnet-burst", 3);
    const std::uint64_t tag = b.write(0, 0);
    b.advance(100);
    ASSERT_TRUE(b.model.next_arrival(1, 1, 547));
    EXPECT_EQ(b.model.next_arrival(1, 1, 547)->tag, tag);
    EXPECT_FALSE(b.model.next_arrival(1, 1, 546)) << "it is not asked for";
    EXPECT_FALSE(b.model.next_arrival(2, 1, 800)) << "it is not under way to there";
    b.model.set_alive(1, false, 500);
    EXPECT_FALSE(b.model.next_arrival(1, 1, 547));
    b.drain();
    EXPECT_EQ(b.arrival(1, tag), -1);
}

}  // namespace
}  // namespace rmem
