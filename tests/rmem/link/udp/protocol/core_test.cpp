// SPDX-License-Identifier: Apache-2.0
#include "tests/rmem/link/udp/protocol/core_fixture.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rmem::udp {
namespace {

TEST(Core, alone_forms_a_ring) {
    Ring ring(3);
    Ring::Node& node = ring.start(1);
    EXPECT_FALSE(node.core.has_room(1)) << "nobody writes before it is a member";
    ASSERT_TRUE(ring.run_until([&] { return node.core.is_member(); }, 2 * kFormNs));
    EXPECT_GE(ring.now, kFormNs);
    EXPECT_EQ(node.joined, 1U);
    EXPECT_TRUE(node.core.has_room(1));
}

TEST(Core, started_together_with_others_is_in_one_ring_with_them) {
    for (const unsigned count : {2U, 3U, 6U, 8U}) {
        WholeRing ring(count);
        std::uint64_t formed = 0;
        for (unsigned n = 0; n < count; ++n) {
            formed += ring[n].core.counters().rings_formed;
            EXPECT_EQ(ring[n].joined, 1U);
            EXPECT_EQ(ring[n].came.size(), count - 1);
            EXPECT_EQ(ring[n].dropped, 0U);
        }
        EXPECT_EQ(formed, 1U);
    }
}

/// Whose networks may carry less than their interfaces say.
TEST(Core, members_show_each_other_how_long_datagrams_may_be) {
    for (const unsigned count : {2U, 5U}) {
        Ring ring(count);
        ring.payload = 9000;
        ring.start_ring(count);
        const auto is_said = [&] {
            return std::all_of(ring.all.begin(), ring.all.end(), [](const auto& node) {
                return node->core.exchange().payload() == 9000;
            });
        };
        EXPECT_TRUE(
            ring.run_until([&] { return ring.is_whole() && is_said(); }, 2000 * kMillisecond))
            << count;
    }
}

TEST(Core, a_crowd_that_shares_two_processors_becomes_one_ring_with_few_datagrams) {
    constexpr unsigned kNodes = 24;
    constexpr std::int64_t kSlice = 3 * kMillisecond;
    Ring ring(kNodes);
    ring.records = true;
    ring.socket_room = 256;
    for (unsigned node = 0; node < kNodes; ++node) ring.start(node);
    const auto end = ring.now + 4000 * kMillisecond;
    for (unsigned turn = 0; !ring.is_whole() && ring.now < end; ++turn) {
        for (unsigned node = 0; node < kNodes; ++node) {
            const unsigned turns = (node / 2 + kNodes - turn % kNodes) % (kNodes / 2);
            ring.pause(node, ring.now + turns * kSlice);
        }
        ring.run(kSlice);
    }
    EXPECT_TRUE(ring.is_whole()) << ring.describe();
    std::uint64_t joins = 0;
    for (unsigned node = 0; node < kNodes; ++node) joins += ring[node].core.counters().joins_sent;
    EXPECT_LE(joins, 5U * kNodes) << "a join with each greeting: 6 of each node";
    EXPECT_LE(ring.recorded.size(), 55U * kNodes) << "with an admit in each datagram 62";
}

/// Each heartbeat wakes all: so they come together, and as seldom as death allows.
TEST(Core, members_that_do_nothing_send_few_statuses_and_together) {
    constexpr unsigned kNodes = 4;
    Ring ring(kNodes);
    for (unsigned n = 0; n < kNodes; ++n) {
        ring.start(n);
        ring.run(7 * kMillisecond);  // not together
    }
    ASSERT_TRUE(ring.becomes_whole(2'000 * kMillisecond));
    ring.run(200 * kMillisecond);
    const std::int64_t heartbeat = ring[0].config_of(0, kNodes, 1).dead_ns / kStatusesADeath;
    constexpr std::size_t kHeartbeats = 100;
    ring.records = true;
    std::size_t times = 0;
    const std::int64_t end = ring.now + static_cast<std::int64_t>(kHeartbeats) * heartbeat;
    while (ring.now < end) {
        const std::size_t before = ring.recorded.size();
        ring.run(heartbeat / 10);
        if (ring.recorded.size() != before) ++times;
    }
    EXPECT_GE(ring.recorded.size(), kNodes * (kHeartbeats - 1));
    EXPECT_LE(ring.recorded.size(), kNodes * (kHeartbeats + 1));
    EXPECT_LE(times, 2 * kHeartbeats) << "alone, each would choose a time of its own";
    EXPECT_TRUE(ring.is_whole());
}

TEST(Core, a_node_that_comes_late_gets_the_bank_while_others_go_on_writing) {
    Ring ring(4, {.lost_percent = 3, .jitter_ns = 3000});
    ring.start_ring(3);
    const auto write = [&](unsigned times) {
        for (; times > 0; --times) {
            ring.write_something(static_cast<unsigned>(ring.random.below(3)));
            ring.run(5000);
        }
    };
    write(2000);
    Ring::Node& late = ring.start(3);
    std::uint64_t written = 0;
    while (!late.core.is_member()) {
        write(10);
        ASSERT_LT(written += 10, 20'000U);
    }
    EXPECT_GE(written, 10U);
    write(200);
    ring.expect_to_become_whole_with_equal_banks();
}

TEST(Core, gives_no_bank_that_is_ahead_of_its_own_stream) {
    Ring ring(2);
    ring.start(0);
    ASSERT_TRUE(ring.becomes_member(0));
    ring[0].hands_over = false;
    ring.start(1);
    ring.run(500 * kMillisecond);
    EXPECT_FALSE(ring[1].core.is_member());
    ring[0].hands_over = true;
    EXPECT_TRUE(ring.becomes_whole(500 * kMillisecond));
}

TEST(Core, gives_a_bank_that_is_behind_the_streams_as_what_it_is) {
    Ring ring(3);
    ring.start_ring(2);
    ring[0].holds_back = true;
    for (int i = 0; i < 20; ++i) ring.write_something(1);
    ring.run(kMillisecond);
    ASSERT_EQ(ring[0].behind(1), 20U);
    Ring::Node& late = ring.start(2);
    ring.run(50 * kMillisecond);
    EXPECT_FALSE(late.core.is_member()) << "the bank given lacks what came before the admission";
    ring[0].holds_back = false;
    ring[0].show_held();
    ring.expect_to_become_whole_with_equal_banks();
}

TEST(Core, notices_that_another_is_dead_and_takes_it_in_again_as_a_new_incarnation) {
    WholeRing ring(3);
    for (int i = 0; i < 50; ++i) {
        ring.write_something(2);
        ring.run(20'000);
    }
    ASSERT_TRUE(ring.becomes_whole(100 * kMillisecond));
    ring.kill(2);
    while (ring[0].core.has_room(8)) ring.write_something(0);
    ASSERT_TRUE(ring.becomes_whole(200 * kMillisecond));
    EXPECT_EQ(ring[0].left, std::vector<unsigned>{2});
    EXPECT_TRUE(ring[0].core.has_room(8)) << "the dead hold nobody up";
    Ring::Node& again = ring.start(2);
    ASSERT_TRUE(ring.becomes_whole());
    EXPECT_EQ(again.words, ring[0].words);
    EXPECT_NE(again.words[2 * kShare + 1] | again.words[2 * kShare + 60], 0U) << "its own, too";
}

TEST(Core, a_node_that_comes_back_at_once_is_known_to_have_been_away) {
    WholeRing ring(3);
    ring.kill(1);
    ring.start(1);
    ASSERT_TRUE(ring.becomes_whole());
    EXPECT_EQ(ring[0].left, std::vector<unsigned>{1});
    EXPECT_EQ(ring[0].came, (std::vector<unsigned>{1, 2, 1}));
}

TEST(Core, a_node_on_the_higher_side_of_a_cut_that_was_too_long_joins_again) {
    WholeRing ring(4);
    ring.is_cut = [&](unsigned from, unsigned to) { return from / 2 != to / 2; };
    for (int i = 0; i < 400; ++i) {
        ring.write_something(static_cast<unsigned>(i % 4));
        ring.run(kMillisecond);
    }
    EXPECT_EQ(ring[0].core.view().size(), 2U);
    EXPECT_EQ(ring[3].core.view().size(), 2U);
    ring.mend_all();
    ring.expect_to_become_whole_with_equal_banks();
    ring.expect_dropped({2, 3});
}

TEST(Core, a_node_that_nobody_hears_any_more_learns_that_it_was_dropped) {
    WholeRing ring(3);
    ring.is_cut = [&](unsigned from, unsigned) { return from == 1; };
    ring.run(300 * kMillisecond);
    ring.expect_dropped({1});
    // Nobody answers it, so all that it hears might be recorded: it forms a ring, which does not
    // stand.
    ring.mend_all();
    ring.expect_to_become_whole_with_equal_banks();
    EXPECT_EQ(ring[0].dropped + ring[2].dropped, 0U);
}

TEST(Core, a_node_that_was_away_goes_whatever_its_number_and_undoes_nothing) {
    for (const unsigned count : {2U, 3U, 4U}) {
        for (unsigned away = 0; away < count; ++away) {
            SCOPED_TRACE(testing::Message() << away << " of " << count);
            WholeRing ring(count);
            ring.pause(away, ring.now + 400 * kMillisecond);
            const unsigned other = (away + 1) % count;
            ring.write_for(350, {other});
            const std::vector<std::uint32_t> written = ring[other].words;
            ASSERT_TRUE(ring.run_until([&] { return ring.is_whole() && !ring.is_paused(away); },
                                       2000 * kMillisecond));
            ring.expect_dropped({away});
            for (unsigned n = 0; n < count; ++n) EXPECT_EQ(ring[n].words, written) << n;
        }
    }
}

TEST(Core, stopped_together_with_all_others_goes_on) {
    WholeRing ring(3);
    ring.write_something(2);
    ring.run(10 * kMillisecond);
    for (unsigned n = 0; n < 3; ++n) ring.pause(n, ring.now + 500 * kMillisecond + n * 1000);
    ring.run(1500 * kMillisecond);
    EXPECT_TRUE(ring.is_whole());
    ring.expect_dropped({});
}

TEST(Core, a_node_of_the_older_of_two_rings_stays_though_both_have_written) {
    for (const unsigned apart : {0U, 2U}) {
        Ring ring(3);
        for (unsigned n = 0; n < 3; ++n) {
            if (n != apart) ring.start(n);
        }
        ASSERT_TRUE(ring.becomes_whole());
        ring.is_cut = [&](unsigned from, unsigned to) { return (from == apart || to == apart); };
        ring.start(apart);
        ASSERT_TRUE(ring.becomes_member(apart));
        for (unsigned n = 0; n < 3; ++n) ring.write_something(n);
        ring.run(10 * kMillisecond);
        const std::vector<std::uint32_t> written = ring[1].words;
        ring.mend_all();
        ASSERT_TRUE(ring.becomes_whole());
        for (unsigned n = 0; n < 3; ++n) EXPECT_EQ(ring[n].words, written) << n;
        ring.expect_dropped({apart});
    }
}

TEST(Core, is_not_moved_by_what_was_recorded_in_another_session) {
    Ring ring(3);
    ring.records = true;
    ring.start_ring(3);
    for (unsigned n = 0; n < 3; ++n) ring.write_something(n);
    ring.run(200 * kMillisecond);
    for (unsigned n = 0; n < 3; ++n) ring.kill(n);
    ring.records = false;
    const auto recorded = std::exchange(ring.recorded, {});
    ring.run(1000 * kMillisecond);
    ring.start_ring(2);
    for (int times = 0; times < 10; ++times) {
        for (const auto& datagram : recorded) {
            ring.play(datagram);
            if (times % 2 == 0) ring.run(kMillisecond / 4);
        }
        ring.write_something(0);
    }
    ring.run(10 * kMillisecond);
    ring.expect_dropped({});
    EXPECT_TRUE(ring[0].left.empty());
    EXPECT_FALSE(ring[0].core.exchange().out().receivers().contains(2));
    EXPECT_TRUE(ring.is_whole()) << ring.describe();
    // Nor does it keep a node from joining.
    ring.start(2);
    const std::int64_t since = ring.now;
    for (std::size_t i = 0; !ring[2].core.is_member(); ++i) {
        ring.play(recorded[i % recorded.size()]);
        ring.run(kMillisecond / 2);
        ASSERT_LT(ring.now - since, 500 * kMillisecond);
    }
}

TEST(Core, a_node_whose_clock_was_set_back_comes_back) {
    WholeRing ring(2);
    ring.kill(1);
    ring.all[1] = std::make_unique<Ring::Node>(ring, 1, 5);  // an incarnation below all that were
    ASSERT_TRUE(ring.becomes_whole());
    EXPECT_EQ(ring[1].core.incarnation(), 5U);
}

/// Two hosts that were given one number, and can hear each other.
TEST(Core, a_node_with_a_number_that_another_process_has_says_so_and_forms_no_ring) {
    Ring ring(2);
    ring.start(0);
    ASSERT_TRUE(ring.becomes_member(0));
    Ring::Node second(ring, 0, 100'000'000'000);
    for (int i = 0; i < 2000; ++i) {
        ring.run(kMillisecond);
        if (second.core.due_ns() <= ring.now) second.core.on_tick(ring.now);
        ring.collect();
        for (const auto& datagram : std::exchange(ring.to_namesakes, {})) {
            ring[0].core.on_datagram(datagram, ring.now);
            second.core.on_datagram(datagram, ring.now);
        }
    }
    EXPECT_FALSE(second.core.is_member());
    EXPECT_GT(second.namesakes, 0U);
    EXPECT_TRUE(ring[0].core.is_member());
    EXPECT_EQ(ring[0].namesakes, 0U) << "who came first stays, and need not care";
    EXPECT_EQ(ring[0].dropped, 0U);
}

TEST(Core, a_node_that_hears_a_member_again_that_it_gave_up_while_joining_begins_again) {
    Ring ring(3);
    ring.start_ring(2);
    // The donor is not heard, so it goes on joining; then the other member is not heard, either.
    bool hears_0 = false, hears_1 = true;
    ring.is_cut = [&](unsigned from, unsigned to) {
        return to == 2 && (from == 0 ? !hears_0 : !hears_1);
    };
    ring.start(2);
    ring.write_for(30, {1});
    EXPECT_TRUE(ring[2].core.exchange().takes(1));
    hears_1 = false;
    ring.write_for(150, {1});
    EXPECT_FALSE(ring[2].core.exchange().takes(1));
    hears_0 = hears_1 = true;
    ring.expect_to_become_whole_with_equal_banks();
}

TEST(Core, a_node_that_has_writes_of_a_ring_that_is_gone_takes_the_new_ones_bank) {
    Ring ring(3);
    ring.start_ring(2);
    ring.is_cut = [&](unsigned from, unsigned to) { return from == 0 && to == 2; };
    ring.start(2);
    ring.run(20 * kMillisecond);
    ring.write_for(20, {1});
    EXPECT_FALSE(ring[2].core.is_member());
    EXPECT_NE(ring[2].words, std::vector<std::uint32_t>(kBankWords));
    ring.kill(0);
    ring.kill(1);
    ring.mend_all();
    ring.start(0);
    ring.expect_to_become_whole_with_equal_banks();
}

TEST(Core, a_node_that_has_given_up_a_member_gets_forwarded_what_another_still_hears) {
    WholeRing ring(3);
    ring.is_cut = [&](unsigned from, unsigned to) { return from + to == 3; };
    ring.write_for(400, {2});
    EXPECT_FALSE(ring[1].core.view().contains(2));
    EXPECT_TRUE(ring[0].core.view().contains(2));
    EXPECT_EQ(ring[1].words, ring[0].words) << "it is given what the other hears";
    EXPECT_EQ(ring[1].dropped, 0U);
    ring.write_for(400, {2});
    EXPECT_EQ(ring[2].dropped, 1U) << "of two that do not hear each other the lower one stands";
    ring.kill(2);
    ring.expect_to_become_whole_with_equal_banks();
    EXPECT_EQ(ring[0].dropped, 0U);
}

TEST(Core, applies_nothing_of_a_node_of_another_ring_that_it_met_while_that_joined) {
    Ring ring(3);
    ring.start_ring(2);
    ring.write_something(0);
    // It meets one member, and then its joins are heard, but it hears nobody; and it is not heard
    // while it forms a ring.
    bool is_heard = true;
    const std::int64_t met_ns = ring.now + kMillisecond;
    ring.is_cut = [&](unsigned from, unsigned to) {
        const bool is_meeting = from == 1 && to == 2 && ring.now < met_ns;
        return from + to != 1 && !(is_heard && from == 2 && to == 1) && !is_meeting;
    };
    ring.start(2);
    ring.run(kFormNs - 5 * kMillisecond);
    EXPECT_TRUE(ring[1].core.exchange().takes(2));
    is_heard = false;
    ASSERT_TRUE(ring.run_until([&] { return ring[2].core.is_member(); }, 10 * kMillisecond));
    is_heard = true;
    for (int i = 0; i < 5; ++i) ring.write_something(2);
    ring.run(5 * kMillisecond);
    EXPECT_EQ(ring[1].words, ring[0].words);
    ring.run(2 * kStatusNs);
    EXPECT_FALSE(ring[1].core.exchange().takes(2)) << "the older ring stands";
    ring.mend_all();
    ring.expect_to_become_whole_with_equal_banks();
    EXPECT_EQ(ring[0].dropped + ring[1].dropped, 0U);
}

TEST(Core, a_node_that_took_a_stream_without_being_heard_is_told_again_from_where_it_counts) {
    Ring ring(2);
    bool hears_0 = true, hears_1 = true;
    ring.is_cut = [&](unsigned, unsigned to) { return to == 0 ? !hears_1 : !hears_0; };
    ring.start(0);
    ASSERT_TRUE(ring.becomes_member(0));
    ring.start(1);
    for (int i = 0; i < 1000 && !ring[0].core.exchange().takes(1); ++i) {
        ring.run(1000);
        // It has greeted, and does not hear that it was admitted.
        hears_0 = ring[1].core.counters().joins_sent < 2;
    }
    ASSERT_TRUE(ring[0].core.exchange().takes(1));
    for (int i = 0; i < 5; ++i) ring.write_something(0);
    EXPECT_FALSE(ring[1].core.exchange().takes(0));
    hears_0 = true;
    ring.expect_to_become_whole_with_equal_banks();
}

TEST(Core, a_node_with_others_ends_whole_and_with_equal_banks_whatever_happened) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random dice(seed * 7919);
        Weather weather;
        weather.lost_percent = static_cast<unsigned>(dice.below(16));
        weather.repeated_percent = static_cast<unsigned>(dice.below(16));
        weather.jitter_ns = static_cast<std::int64_t>(dice.below(20'000));
        const auto count = static_cast<unsigned>(dice.below(4)) + 2;
        Ring ring(count, weather, seed);
        unsigned cut_from = count, cut_to = count;  // one way
        std::uint64_t side = 0;                     // these nodes and the others are apart
        ring.is_cut = [&](unsigned from, unsigned to) {
            return (from == cut_from && to == cut_to) || ((side >> from ^ side >> to) & 1U) != 0;
        };
        for (unsigned n = 0; n < count; ++n) ring.start(n);
        for (int step = 0; step < 600; ++step) {
            const auto node = static_cast<unsigned>(dice.below(count));
            switch (dice.below(60)) {
                case 0: ring.kill(node); break;
                case 1:
                case 2:
                    if (!ring.all[node]) ring.start(node);
                    break;
                case 3: cut_from = node, cut_to = static_cast<unsigned>(dice.below(count)); break;
                case 4: cut_from = count; break;
                case 5: side = dice.below(1U << count); break;
                case 6:
                case 7: side = 0; break;
                default: ring.write_something(node);
            }
            ring.run(static_cast<std::int64_t>(dice.below(4'000'000)));
        }
        cut_from = count;
        side = 0;
        for (unsigned n = 0; n < count; ++n) {
            if (!ring.all[n]) ring.start(n);
        }
        ASSERT_TRUE(ring.becomes_whole(20'000 * kMillisecond))
            << "seed " << seed << ring.describe();
        ring.expect_equal_banks();
    }
}

}  // namespace
}  // namespace rmem::udp
