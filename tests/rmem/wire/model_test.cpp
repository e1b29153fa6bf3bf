// SPDX-License-Identifier: Apache-2.0
#include "rmem/wire/model.hpp"

#include "rmem/base/random.hpp"
#include "tests/rmem/wire/model_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace rmem {
namespace {

// ---- Passing

TEST(WireModel, a_word_is_a_slot_away_and_247_ns_more_behind_each_node) {
    Bench b("scramnet-burst", 4, 5000);
    const std::uint64_t tag = b.write(2, 6000);
    b.drain();
    EXPECT_EQ(b.arrival(3, tag), 6547);
    EXPECT_EQ(b.arrival(0, tag), 6794);
    EXPECT_EQ(b.arrival(1, tag), 7041);
    EXPECT_EQ(b.time_of(Kind::returned, 2, tag), 7288);
    EXPECT_EQ(b.outcomes.size(), 4u);
    EXPECT_EQ(b.model.counters(2).removed_by_source, 1u);
    EXPECT_EQ(b.model.counters(2).returned, 1u);
    EXPECT_EQ(b.model.counters(0).passed, 1u);
}

TEST(WireModel, cable_adds_five_ns_a_metre_to_each_hop_and_gt200_passes_in_450_ns) {
    for (const auto& [profile, first, second] :
         {std::tuple{"scramnet-burst,cable=20m", 547 + 100, 547 + 100 + 247 + 100},
          {"gt200", 350 + 80, 350 + 80 + 450}}) {
        Bench b(profile, 3);
        const std::uint64_t tag = b.write(0, 0);
        b.drain();
        EXPECT_EQ(b.arrival(1, tag), first) << profile;
        EXPECT_EQ(b.arrival(2, tag), second) << profile;
    }
}

TEST(WireModel, a_passing_packet_waits_for_the_own_packet) {
    Bench b("scramnet-burst", 3);
    const std::uint64_t passing = b.write(0, 0);
    const std::uint64_t own = b.write(1, 246);  // ends at 792.667
    b.drain();
    EXPECT_EQ(b.arrival(2, own), 793);
    EXPECT_EQ(b.arrival(2, passing), 1340);  // stayed 792.667 instead of 247
}

TEST(WireModel, an_own_packet_is_inserted_only_when_nothing_passing_waits) {
    Bench b("scramnet-burst", 3);
    const std::uint64_t passing = b.write(0, 0);
    const std::uint64_t own = b.write(1, 247);  // the very moment at which the other may leave
    b.drain();
    EXPECT_EQ(b.arrival(2, passing), 794);
    EXPECT_EQ(b.arrival(2, own), 1341);
    EXPECT_EQ(b.model.counters(1).max_insertion_wait_ns, 546u);
}

void expect_stays(const std::string& profile, std::uint32_t bytes, std::int64_t most_ns) {
    constexpr std::uint16_t kNodes = 5;
    Bench b(profile, kNodes);
    Random random(7);
    for (std::int64_t t = 0; t < 4'000'000; t += 500) {
        const auto origin = static_cast<std::uint16_t>(random.below(kNodes));
        if (random.below(4) == 0) b.write(origin, t, bytes);
    }
    b.drain();
    std::map<std::uint64_t, std::int64_t> last;  // by tag: the arrival one node before
    std::int64_t longest = 0;
    for (const WireOutcome& o : b.outcomes) {
        const auto before = last.find(o.tag);
        if (before != last.end()) {
            EXPECT_GE(o.time_ns - before->second, 246);
            longest = std::max(longest, o.time_ns - before->second);
        }
        last[o.tag] = o.time_ns;
    }
    EXPECT_LE(longest, most_ns);
    EXPECT_GE(longest, most_ns * 9 / 10);
}

TEST(WireModel, a_stay_in_a_node_is_at_most_794_ns_of_a_word_or_a_packet_of_its_length) {
    expect_stays("scramnet-burst", 4, 795);
    expect_stays("scramnet-burst-plus", 256, 15'915);
    EXPECT_TRUE(within(15'915, 16'200, 2)) << "the manual's";
    expect_stays("scramnet-burst-plus-1k", 1024, 61'996);
    EXPECT_TRUE(within(61'996, 61'800, 2)) << "the manual's";
}

// ---- Throughput

/// Bytes per millisecond that each of the `senders` gets, all saturating; `words` a write.
std::vector<std::uint64_t> shares(const std::string& profile, std::uint16_t nodes,
                                  std::uint16_t senders, std::uint32_t bytes) {
    constexpr std::int64_t kMilliseconds = 4;
    Bench b(profile, nodes);
    std::uint64_t offset = 0;
    for (int n = 0; n < 17'000 * kMilliseconds / static_cast<int>(bytes) + 10;
         ++n, offset += bytes) {
        for (std::uint16_t s = 0; s < senders; ++s) {
            b.write_at(static_cast<std::uint16_t>(s * nodes / senders), s * 37, offset, bytes);
        }
    }
    b.advance(kMilliseconds * 1'000'000);
    std::vector<std::uint64_t> result;
    for (std::uint16_t s = 0; s < senders; ++s) {
        const auto node = static_cast<std::uint16_t>(s * nodes / senders);
        result.push_back(b.model.counters(node).returned * bytes / kMilliseconds);
    }
    return result;
}

TEST(WireModel, one_transmitter_sends_a_word_each_615_ns) {
    Bench b("scramnet-burst", 3);
    const std::uint64_t first = b.write_at(0, 0, 0, 40);
    const std::uint64_t second = b.write_at(0, 0, 40, 4);
    b.drain();
    EXPECT_EQ(b.arrival(1, first), 9 * 615 + 547);
    EXPECT_EQ(b.arrival(1, second), 10 * 615 + 547);
    EXPECT_TRUE(within(shares("scramnet-burst", 4, 1, 4)[0], 6500, 1));
}

// The sum is what one gets; where the senders sit moves a share by less than a tenth.
TEST(WireModel, n_saturating_transmitters_share_what_one_gets) {
    for (const std::uint16_t n : std::initializer_list<std::uint16_t>{2, 3, 4, 8, 16}) {
        std::uint64_t sum = 0;
        for (const std::uint64_t share : shares("scramnet-burst", 16, n, 4)) {
            EXPECT_TRUE(within(share, 6500u / n, 9)) << n << " senders, " << share << " B/ms";
            sum += share;
        }
        EXPECT_TRUE(within(sum, 6500, 1)) << n << " senders, " << sum << " B/ms";
    }
}

TEST(WireModel, plus_packets_reach_the_manuals_throughput) {
    EXPECT_TRUE(within(shares("scramnet-burst-plus", 4, 1, 64)[0], 16'200, 2));
    EXPECT_TRUE(within(shares("scramnet-burst-plus-1k", 4, 1, 64)[0], 16'700, 2));
    for (const std::uint64_t share : shares("scramnet-burst-plus", 4, 4, 64)) {
        EXPECT_TRUE(within(share, 16'200 / 4, 3)) << share;
    }
}

TEST(WireModel, a_newcomer_gets_in_beside_a_saturating_transmitter) {
    Bench b("scramnet-burst", 2);
    for (int n = 0; n < 1000; ++n) b.write(0, 0);
    const std::uint64_t tag = b.write(1, 100'000);
    b.drain();
    EXPECT_LT(b.arrival(0, tag), 100'000 + 2 * 615 + 547);
}

TEST(WireModel, a_write_that_finds_an_empty_fifo_arrives_within_the_bound) {
    for (const char* profile : {"scramnet-burst", "scramnet-burst-plus", "gt200,cable=3m"}) {
        constexpr std::uint16_t kNodes = 6;
        Bench b(profile, kNodes);
        const std::int64_t bound = bound_ns(b.model.profile(), kNodes);
        std::map<std::uint64_t, std::int64_t> written;  // by node 0, one at a time
        Random random(3);
        std::int64_t now = 0;
        for (int n = 0; n < 2000; ++n) {
            now += bound + static_cast<std::int64_t>(random.below(3000));
            for (std::uint16_t node = 1; node < kNodes; ++node) {  // the others saturate the ring
                while (b.model.fifo_occupancy(node) < 64) {
                    b.write(node, now, 64);
                    b.advance(now);
                }
            }
            written[b.write(0, now, 4)] = now;
            b.advance(now);
        }
        std::int64_t longest = 0;
        for (const WireOutcome& o : b.outcomes) {
            if (o.origin != 0 || o.kind != Kind::arrived) continue;
            longest = std::max(longest, o.time_ns - written[o.tag]);
        }
        EXPECT_LE(longest, bound) << profile;
        EXPECT_GE(longest, bound / 16) << profile;
    }
}

// ---- PLUS packets

TEST(WireModel, sequential_writes_that_keep_up_share_a_packet) {
    Bench b("scramnet-burst-plus", 2);
    b.write_at(0, 0, 0, 4);
    b.write_at(0, 500, 4, 4);  // the first word leaves until 546.667
    b.write_at(0, 786, 8, 4);  // the second until 786.667
    b.drain();
    EXPECT_EQ(b.model.counters(0).sent, 1u);
    EXPECT_EQ(b.arrival(1, 1), 547);
    EXPECT_EQ(b.arrival(1, 2), 787);
    EXPECT_EQ(b.arrival(1, 3), 1027);
}

TEST(WireModel, a_late_write_a_jump_in_the_address_and_an_interrupt_open_a_new_packet) {
    Bench late("scramnet-burst-plus", 2);
    late.write_at(0, 0, 0, 4);
    late.write_at(0, 547, 4, 4);
    late.drain();
    EXPECT_EQ(late.model.counters(0).sent, 2u);
    EXPECT_EQ(late.arrival(1, 2), 615 + 547);
    Bench b("scramnet-burst-plus", 2);
    b.write_at(0, 0, 0, 4);
    b.write_at(0, 0, 8, 4);
    b.write_at(0, 0, 12, 4, true);
    b.write_at(0, 0, 16, 4);
    b.drain();
    EXPECT_EQ(b.model.counters(0).sent, 4u);
    EXPECT_TRUE(b.outcomes[4].interrupt);
}

TEST(WireModel, the_length_limit_closes_a_packet) {
    Bench b("scramnet-burst-plus", 2);
    b.write_at(0, 0, 0, 260);
    b.drain();
    EXPECT_EQ(b.model.counters(0).sent, 2u);
    EXPECT_EQ(b.model.counters(0).sent_words, 65u);
    // 256 bytes and a gap, then a packet of one word: the write is in with its last word.
    EXPECT_EQ(b.arrival(1, 1), (15'666'667 + 68'333 + 546'667 + 999) / 1000);
}

TEST(WireModel, a_partial_word_is_sent_as_a_whole_one) {
    Bench b("scramnet-burst", 2);
    b.write_at(0, 0, 3, 2);
    b.drain();
    EXPECT_EQ(b.model.counters(0).sent_words, 2u);
}

// ---- The TX FIFO

TEST(WireModel, a_full_fifo_loses_when_asked_to_and_counts) {
    Bench b("scramnet-burst,fifo=lose", 2);
    for (int n = 0; n < 1100; ++n) b.write(0, 10);
    b.advance(10);
    EXPECT_EQ(b.count(Kind::lost), 1100u - 1024u);
    EXPECT_EQ(b.outcomes.back().cause, WireLoss::fifo_full);
    EXPECT_EQ(b.outcomes.back().node, 0);
    b.drain();
    EXPECT_EQ(b.count(Kind::arrived), 1024u);
    EXPECT_EQ(b.model.counters(0).lost_fifo_full, 76u);
    EXPECT_EQ(b.model.counters(0).max_fifo_words, 1024u);
}

TEST(WireModel, a_full_fifo_holds_off_otherwise_and_loses_nothing) {
    Bench b("scramnet-burst", 2);
    for (int n = 0; n < 1100; ++n) b.write(0, 10);
    b.drain();
    EXPECT_EQ(b.count(Kind::arrived), 1100u);
    EXPECT_EQ(b.count(Kind::lost), 0u);
    EXPECT_EQ(b.model.counters(0).held_off, 76u);
}

TEST(WireModel, the_edge_can_ask_for_occupancy_and_for_room) {
    Bench b("scramnet-burst", 2);
    EXPECT_EQ(b.model.room_at(0, 1024), 0);
    for (int n = 0; n < 1025; ++n) b.write(0, 0);
    b.advance(0);  // one has left
    EXPECT_EQ(b.model.fifo_occupancy(0), 1024u);
    EXPECT_EQ(b.model.room_at(0, 1), 615);
    EXPECT_EQ(b.model.room_at(0, 3), 3 * 615);
    b.advance(3 * 615);
    EXPECT_EQ(b.model.fifo_occupancy(0), 1021u);
    EXPECT_EQ(b.model.room_at(0, 3), 3 * 615);
    b.drain();
    EXPECT_EQ(b.model.fifo_occupancy(0), 0u);
}

TEST(WireModel, words_of_a_plus_packet_leave_the_fifo_one_by_one) {
    Bench b("scramnet-burst-plus", 2);
    b.write_at(0, 0, 0, 256);
    b.advance(0);
    EXPECT_EQ(b.model.fifo_occupancy(0), 63u);
    b.advance(547);
    EXPECT_EQ(b.model.fifo_occupancy(0), 62u);
    b.advance(547 + 240 * 61);
    EXPECT_EQ(b.model.fifo_occupancy(0), 1u);
    b.drain();
    EXPECT_EQ(b.model.fifo_occupancy(0), 0u);
}

TEST(WireModel, a_late_submission_is_clamped_and_never_reorders) {
    Bench b("scramnet-burst", 2);
    b.advance(1000);
    const std::uint64_t late = b.write(0, 400);
    EXPECT_EQ(b.submitted, WireSubmit::clamped);
    const std::uint64_t next = b.write(0, 1000);
    EXPECT_EQ(b.submitted, WireSubmit::accepted);
    b.write(0, 999);
    EXPECT_EQ(b.submitted, WireSubmit::clamped);
    b.drain();
    EXPECT_EQ(b.arrival(1, late), 1547);
    EXPECT_EQ(b.arrival(1, next), 1547 + 615);
    EXPECT_EQ(b.model.counters(0).clamped, 2u);
}

TEST(WireModel, an_extra_delay_holds_back_the_writes_behind_it) {
    Bench b("scramnet-burst", 2);
    const std::uint64_t delayed = b.write_at(0, 0, 0, 4, false, 5000);
    const std::uint64_t behind = b.write_at(0, 100, 64);
    const std::uint64_t other = b.write_at(1, 100, 64);
    b.drain();
    EXPECT_EQ(b.arrival(1, delayed), 5547);
    EXPECT_EQ(b.arrival(1, behind), 5547 + 615);
    EXPECT_EQ(b.arrival(0, other), 647);
}

TEST(WireModel, what_cannot_be_a_write_is_refused) {
    Bench b("scramnet-burst", 2);
    b.write(2, 0);
    EXPECT_EQ(b.submitted, WireSubmit::refused);
    b.write_at(0, 0, 0, 0);
    EXPECT_EQ(b.submitted, WireSubmit::refused);
    EXPECT_EQ(b.model.next_time_ns(), kNever);
    EXPECT_THROW(Bench("none", 0), Error);
    EXPECT_THROW(Bench("none", 257), Error);
}

// ---- Nodes that come and go

TEST(WireModel, a_bypassed_node_neither_receives_nor_delays) {
    Bench b("scramnet-burst", 4);
    b.model.set_alive(1, false, 0);
    const std::uint64_t first = b.write(0, 10);
    b.advance(5000);
    EXPECT_EQ(b.arrival(1, first), -1);
    EXPECT_EQ(b.arrival(2, first), 10 + 547);
    b.model.set_alive(1, true, 6000);
    const std::uint64_t second = b.write(0, 7000);
    b.drain();
    EXPECT_EQ(b.arrival(1, second), 7547);
    EXPECT_EQ(b.arrival(2, second), 7794);
    EXPECT_EQ(b.model.counters(1).bypasses, 1u);
}

TEST(WireModel, a_bypassed_nodes_queue_is_lost_and_counted) {
    Bench b("scramnet-burst", 2);
    for (int n = 0; n < 10; ++n) b.write(0, 0);
    b.model.set_alive(0, false, 700);  // two words are on the wire
    b.write(0, 800);
    b.drain();
    EXPECT_EQ(b.count(Kind::arrived), 2u);
    EXPECT_EQ(b.count(Kind::lost), 9u);
    EXPECT_EQ(b.model.counters(0).lost_dead_node, 9u);
}

TEST(WireModel, what_is_in_a_dying_nodes_register_goes_on) {
    Bench b("scramnet-burst", 3);
    const std::uint64_t tag = b.write(0, 0);
    b.model.set_alive(1, false, 100);
    b.drain();
    EXPECT_EQ(b.arrival(1, tag), -1);
    EXPECT_EQ(b.arrival(2, tag), 647);
    EXPECT_EQ(b.time_of(Kind::returned, 0, tag), 894);
}

TEST(WireModel, what_follows_a_growing_packet_around_a_bypassed_node_stays_behind_all_of_it) {
    Bench b("gt200", 4);
    // Node 1 fails while it is sending, so packets that come through its place must wait for the
    // rest.
    std::vector<std::uint64_t> tags;
    for (int n = 0; n < 16; ++n) b.write_at(1, 4, 4096 + 4 * static_cast<std::uint64_t>(n));
    b.model.set_alive(1, false, 400);
    // One packet that grows word by word, then another.
    for (int n = 0; n < 24; ++n) {
        tags.push_back(b.write_at(0, 16 * n, 512 + 4 * static_cast<std::uint64_t>(n)));
    }
    tags.push_back(b.write(0, 16 * 24));
    tags.push_back(b.write(0, 16 * 25));
    b.drain();
    for (std::size_t n = 1; n < tags.size(); ++n) {
        EXPECT_GT(b.arrival(2, tags[n]), b.arrival(2, tags[n - 1])) << "write " << n;
    }
}

TEST(WireModel, what_a_fault_holds_back_in_a_card_is_lost_with_it) {
    TimingProfile small = parse_timing("scramnet-burst");
    small.fifo_words = 1;
    for (const TimingProfile& profile :
         {parse_timing("scramnet-burst"), small, parse_timing("gt200"), parse_timing("none")}) {
        SCOPED_TRACE(to_string(profile) + ", FIFO " + std::to_string(profile.fifo_words));
        Bench b(profile, 3);
        const std::uint64_t held = b.write_at(0, 0, 64, 4, false, 100'000);
        const std::uint64_t behind = b.write(0, 10);
        b.model.set_alive(0, false, 1000);
        b.model.set_alive(0, true, 50'000);
        const std::uint64_t fresh = b.write(0, 60'000);
        b.drain();
        EXPECT_EQ(b.arrival(1, held), -1);
        EXPECT_EQ(b.arrival(1, behind), -1);
        EXPECT_EQ(b.time_of(Kind::lost, 0, held), 1000);
        EXPECT_EQ(b.time_of(Kind::lost, 0, behind), 1000);
        EXPECT_LE(b.arrival(1, fresh), 62'000);
        EXPECT_GE(b.arrival(1, fresh), 60'000);
    }
}

TEST(WireModel, a_stray_is_removed_by_its_age) {
    Bench b("scramnet-burst", 3);
    const std::uint64_t tag = b.write(0, 0);
    b.model.set_alive(0, false, 300);
    b.drain();
    EXPECT_EQ(b.count(Kind::arrived), 2u);
    EXPECT_EQ(b.time_of(Kind::returned, 0, tag), -1);
    // 256 nodes let it through, two of them on its first circle; then the next one takes it off,
    // though its word is in that one's memory by then.
    EXPECT_EQ(b.model.totals().passed, 256u);
    EXPECT_EQ(b.count(Kind::stray), 255u);
    EXPECT_EQ(b.model.totals().aged_out, 1u);
}

TEST(WireModel, a_ring_of_256_nodes_carries_a_packet_all_the_way_round) {
    Bench b("scramnet-burst", 256);
    const std::uint64_t tag = b.write(17, 0);
    b.drain();
    EXPECT_EQ(b.count(Kind::arrived), 255u);
    EXPECT_EQ(b.time_of(Kind::returned, 17, tag), (546'667 + 255 * 247'000 + 999) / 1000);
    EXPECT_EQ(b.model.totals().aged_out, 0u);
}

// ---- Cables

TEST(WireModel, a_cut_cable_heals_over_the_second_ring) {
    Bench b("scramnet-burst", 3);
    b.model.set_cable(0, 1, false, 100);
    const std::uint64_t tag = b.write(0, 1000);
    b.drain();
    EXPECT_EQ(b.arrival(2, tag), 1794);
    EXPECT_EQ(b.model.counters(1).switch_overs, 1u);
    EXPECT_EQ(b.count(Kind::lost), 0u);
}

TEST(WireModel, burst_loses_what_was_on_the_cut_segment) {
    Bench b("scramnet-burst", 4);
    const std::uint64_t first = b.write(0, 0);  // on segment 1 from 247 to 793
    const std::uint64_t second = b.write(0, 700);
    b.model.set_cable(0, 1, false, 400);
    b.drain();
    EXPECT_EQ(b.arrival(1, first), 547);
    EXPECT_EQ(b.arrival(2, first), -1);
    EXPECT_EQ(b.arrival(3, first), -1);
    EXPECT_EQ(b.time_of(Kind::lost, 1, first), 400);
    EXPECT_EQ(b.time_of(Kind::returned, 0, first), -1);
    EXPECT_EQ(b.arrival(2, second), 700 + 794);
    EXPECT_EQ(b.model.counters(0).lost_cable, 1u);
}

TEST(WireModel, what_still_waits_before_the_cut_is_unhurt) {
    Bench b("scramnet-burst", 4);
    const std::uint64_t waiting = b.write(0, 0);  // leaves node 1 at 792.667
    const std::uint64_t own = b.write(1, 246);
    b.model.set_cable(0, 1, false, 500);
    b.drain();
    EXPECT_EQ(b.arrival(2, own), -1);
    EXPECT_EQ(b.arrival(2, waiting), 1340);
    EXPECT_EQ(b.count(Kind::lost), 1u);
}

TEST(WireModel, platinum_sends_it_again) {
    Bench b("platinum", 4);
    const std::uint64_t first = b.write(0, 0);
    const std::uint64_t second = b.write(0, 0);
    b.model.set_cable(0, 1, false, 400);
    b.drain();
    EXPECT_EQ(b.arrival(2, first), 400 + 547);
    EXPECT_EQ(b.arrival(2, second), 400 + 2 * 547);
    EXPECT_NE(b.time_of(Kind::returned, 0, first), -1);
    EXPECT_EQ(b.count(Kind::lost), 0u);
    EXPECT_EQ(b.model.counters(0).retransmitted, 1u);
}

TEST(WireModel, with_both_cables_cut_a_write_ends_there_and_is_counted) {
    Bench b("platinum", 4);
    b.model.set_cable(0, 1, false, 10);
    b.model.set_cable(1, 1, false, 10);
    const std::uint64_t tag = b.write(0, 1000);
    b.advance(10'000);
    EXPECT_NE(b.arrival(1, tag), -1);
    EXPECT_EQ(b.arrival(2, tag), -1);
    EXPECT_NE(b.time_of(Kind::lost, 1, tag), -1);
    EXPECT_EQ(b.time_of(Kind::returned, 0, tag), -1);
    b.model.set_cable(1, 1, true, 11'000);
    const std::uint64_t later = b.write(0, 12'000);
    b.drain();
    EXPECT_EQ(b.arrival(2, later), 12'794);
}

TEST(WireModel, cutting_the_idle_ring_disturbs_nothing) {
    Bench b("scramnet-burst", 3);
    const std::uint64_t tag = b.write(0, 0);
    b.model.set_cable(1, 0, false, 100);
    b.drain();
    EXPECT_EQ(b.arrival(2, tag), 794);
    EXPECT_EQ(b.model.totals().switch_overs, 0u);
}

// ---- The ideal wire

TEST(WireModel, none_delivers_at_once_in_the_order_of_submission) {
    Bench b("none", 3);
    b.write(2, 50);
    b.write(0, 50);
    b.write(1, 60, 4000);
    b.advance(60);
    ASSERT_EQ(b.outcomes.size(), 9u);
    EXPECT_EQ(b.outcomes[0].tag, 1u);
    EXPECT_EQ(b.outcomes[2].kind, Kind::returned);
    EXPECT_EQ(b.outcomes[3].tag, 2u);
    EXPECT_EQ(b.outcomes[5].time_ns, 50);
    EXPECT_EQ(b.outcomes[8].time_ns, 60);
}

TEST(WireModel, a_ring_that_runs_for_a_year_keeps_its_figures) {
    constexpr std::int64_t kDay = 86'400'000'000'000;
    Bench b("scramnet-burst-plus", 3, 12'345);
    for (std::int64_t day = 1; day <= 365; ++day) {
        const std::int64_t now = 12'345 + day * kDay;
        const std::uint64_t tag = b.write_at(0, now, 0, 8);
        b.advance(now + 100);  // in the middle of a packet
        b.drain();
        EXPECT_EQ(b.arrival(1, tag), now + 787);
        EXPECT_EQ(b.arrival(2, tag), now + 787 + 247);
        EXPECT_EQ(b.time_of(Kind::returned, 0, tag), now + 787 + 2 * 247);
        b.outcomes.clear();
    }
}

}  // namespace
}  // namespace rmem
