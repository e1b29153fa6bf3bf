// SPDX-License-Identifier: Apache-2.0
//
// What mpi_channel/collectives.hpp promises of groups, on devices over pipes.
#include "mpi_channel/collectives.hpp"

#include "mpi_channel/device/packets.hpp"
#include "tests/support/group_ranks.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

namespace mpi_channel {
namespace {

/// Buffers of a broadcast: the root's bytes at the root.
std::vector<std::vector<std::byte>> buffers_of(std::size_t members, std::size_t size, unsigned root,
                                               unsigned seed) {
    std::vector<std::vector<std::byte>> buffers(members, untouched(size));
    buffers[root] = pattern(size, seed);
    return buffers;
}

void begin_broadcast(const Opened& group, std::vector<std::vector<std::byte>>& buffers,
                     unsigned root) {
    for (std::size_t i = 0; i < group.size(); ++i) group[i]->broadcast(buffers[i], root);
}

/// Of all members, to its end.
void expect_broadcast(GroupRanks& ranks, const Opened& group, std::size_t size, unsigned root,
                      unsigned seed) {
    SCOPED_TRACE(testing::Message() << size << " bytes of " << root);
    auto buffers = buffers_of(group.size(), size, root, seed);
    begin_broadcast(group, buffers, root);
    ASSERT_EQ(ranks.finish(group), everywhere(group.size(), BBP_OK));
    for (const auto& buffer : buffers) ASSERT_EQ(buffer, pattern(size, seed));
}

/// Each member's block, one behind the other.
std::vector<std::byte> blocks_of(std::size_t members, std::size_t size, unsigned seed) {
    std::vector<std::byte> all;
    for (unsigned i = 0; i < members; ++i) {
        const auto block = pattern(size, seed + i);
        all.insert(all.end(), block.begin(), block.end());
    }
    return all;
}

std::vector<std::byte> group_packet(PacketType type, std::uint32_t group, std::uint64_t number,
                                    std::size_t size = 0) {
    Packet packet;
    packet.header.type = type;
    packet.header.data = group;
    packet.header.tag = number;
    auto bytes = written(packet);
    bytes.resize(bytes.size() + size);
    return bytes;
}

// ---- One operation

class CollectivesOfSize : public testing::TestWithParam<unsigned> {
protected:
    unsigned members() const { return GetParam(); }
    std::vector<int> all() const {
        std::vector<int> ranks(members());
        std::iota(ranks.begin(), ranks.end(), 0);
        return ranks;
    }
};

INSTANTIATE_TEST_SUITE_P(Groups, CollectivesOfSize, testing::Values(1U, 2U, 3U, 5U));

TEST_P(CollectivesOfSize, broadcast_gives_each_member_the_bytes_of_any_root) {
    GroupRanks ranks(members());
    ranks.ranks.pipes.refuse_one_in(3);
    const auto group = ranks.open(1, all());
    const std::size_t piece = ranks.at(0).block_most();
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{41},
                                   piece - 1, piece, piece + 1, 3 * piece, 40 * piece + 7}) {
        for (unsigned root = 0; root < members(); ++root) {
            expect_broadcast(ranks, group, size, root, root);
        }
    }
}

TEST_P(CollectivesOfSize, gather_gives_one_member_or_all_the_blocks_of_all_in_their_order) {
    GroupRanks ranks(members());
    ranks.ranks.pipes.refuse_one_in(3);
    auto order = all();
    std::reverse(order.begin(), order.end());
    const auto group = ranks.open(1, order);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{41}, ranks.at(0).block_most()}) {
        for (unsigned to = 0; to <= members(); ++to) {
            const bool is_to_all = to == members();
            SCOPED_TRACE(testing::Message() << size << " bytes to " << to);
            std::vector<std::vector<std::byte>> own;
            std::vector received(members(), untouched(size * members()));
            for (unsigned i = 0; i < members(); ++i) own.push_back(pattern(size, to + i));
            for (unsigned i = 0; i < members(); ++i)
                group[i]->gather(own[i], is_to_all || i == to ? received[i].data() : nullptr,
                                 is_to_all ? std::nullopt : std::optional(to));
            ASSERT_EQ(ranks.finish(group), everywhere(members(), BBP_OK));
            for (unsigned i = 0; i < members(); ++i) {
                if (is_to_all || i == to) {
                    ASSERT_EQ(received[i], blocks_of(members(), size, to));
                }
            }
        }
    }
}

TEST_P(CollectivesOfSize, barrier_ends_at_nobody_before_the_last_has_begun_it) {
    for (const auto barrier : {std::optional<unsigned>(), std::optional<unsigned>(5)}) {
        GroupRanks ranks(members());
        ranks.ranks.pipes.refuse_one_in(4);
        const auto group = ranks.open(1, all(), barrier);
        for (unsigned round = 0; round < 50; ++round) {
            const unsigned late = round % members();
            std::vector<Group*> early;
            for (unsigned i = 0; i < members(); ++i) {
                if (i == late) continue;
                group[i]->barrier();
                early.push_back(group[i].get());
            }
            if (round % 10 == 0) {
                ASSERT_EQ(ranks.finish_some(early), everywhere(members() - 1, BBP_EAGAIN));
            }
            group[late]->barrier();
            ASSERT_EQ(ranks.finish(group), everywhere(members(), BBP_OK));
        }
    }
}

TEST(Collectives, a_member_knows_its_place_in_the_group) {
    GroupRanks ranks(4);
    const auto group = ranks.open(3, {2, 0, 3});
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(group[i]->own(), i);
        EXPECT_EQ(group[i]->size(), 3U);
    }
}

TEST(Collectives, refuse_groups_that_are_none) {
    GroupRanks ranks(3);
    std::unique_ptr<Group> group;
    const auto open = [&](std::vector<int> to) { group = ranks.at(0).open(1, std::move(to)); };
    EXPECT_THROW(open({1, 2}), std::invalid_argument) << "without itself";
    EXPECT_THROW(open({0, 1, 1}), std::invalid_argument) << "one twice";
    EXPECT_THROW(open({0, 3}), std::invalid_argument) << "no rank of the ring";
    EXPECT_THROW(open({0, -1}), std::invalid_argument);
    EXPECT_THROW(open({}), std::invalid_argument);
    open({0, 1});
    EXPECT_THROW(open({0, 2}), std::invalid_argument) << "an id that is in use";
    group.reset();
    EXPECT_NO_THROW(open({0, 2})) << "an id that was in use";
}

TEST(Collectives, ids_are_of_one_group_each) {
    GroupRanks ranks(2);
    std::vector<std::uint32_t> ids;
    Opened opened;
    for (unsigned i = 0; i < 500; ++i) {
        ids.push_back(ranks.at(0).new_id());
        opened.push_back(ranks.at(0).open(ids.back(), {0, 1}));
        ids.push_back(ranks.at(1).new_id());
    }
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

TEST(Collectives, a_barrier_is_reserved_once) {
    GroupRanks ranks(2);
    EXPECT_EQ(ranks.at(0).reserved_barriers(), 0U);
    EXPECT_TRUE(ranks.at(0).reserve_barrier(0));
    EXPECT_TRUE(ranks.at(0).reserve_barrier(63));
    EXPECT_FALSE(ranks.at(0).reserve_barrier(63));
    EXPECT_FALSE(ranks.at(0).reserve_barrier(Collectives::kBarriers));
    EXPECT_FALSE(ranks.at(0).reserve_barrier(1000));
    EXPECT_EQ(ranks.at(0).reserved_barriers(), 1ULL << 63 | 1U);
    EXPECT_EQ(ranks.at(1).reserved_barriers(), 0U);
}

// ---- Posts

TEST(Collectives, a_broadcast_is_one_multicast_per_piece) {
    GroupRanks ranks(4);
    const auto group = ranks.open(1, {0, 1, 2, 3});
    const std::size_t piece = ranks.at(0).block_most();
    std::uint64_t posted = 0;
    const auto expect = [&](std::size_t size, std::uint64_t posts) {
        expect_broadcast(ranks, group, size, 1, 3);
        posted += posts;
        EXPECT_EQ(ranks.multicasts(1), posted) << size;
    };
    expect(0, 0);
    expect(1, 1);
    expect(41, 1);
    expect(piece, 1);
    expect(piece + 1, 2);
    expect(5 * piece, 5);
    for (const unsigned other : {0U, 2U, 3U}) EXPECT_EQ(ranks.multicasts(other), 0U);
    EXPECT_EQ(ranks.ranks[1].device.transport_counters().packets_sent, 0U);
}

TEST(Collectives, a_gather_to_all_is_one_multicast_of_each_member) {
    GroupRanks ranks(3);
    const auto group = ranks.open(1, {0, 1, 2});
    const auto own = pattern(100, 1);
    std::vector<std::vector<std::byte>> received(3, untouched(300));
    for (unsigned i = 0; i < 3; ++i) group[i]->gather(own, received[i].data(), std::nullopt);
    ASSERT_EQ(ranks.finish(group), everywhere(3, BBP_OK));
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(ranks.multicasts(i), 1U);
}

TEST(Collectives, what_goes_to_one_member_alone_is_a_packet_and_no_multicast) {
    GroupRanks ranks(3);
    const auto three = ranks.open(1, {0, 1, 2});
    const auto pair = ranks.open(2, {0, 2});
    const auto own = pattern(100, 1);
    auto received = untouched(300);
    for (unsigned i = 0; i < 3; ++i) three[i]->gather(own, received.data(), 1);
    ASSERT_EQ(ranks.finish(three), everywhere(3, BBP_OK));
    expect_broadcast(ranks, pair, 100, 0, 3);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(ranks.multicasts(i), 0U) << i;
    const unsigned packets[] = {2, 0, 1};
    for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(ranks.ranks[i].device.transport_counters().packets_sent, packets[i]) << i;
}

TEST(Collectives, a_barrier_of_the_billboards_sends_nothing) {
    GroupRanks ranks(3);
    const auto group = ranks.open(1, {0, 1, 2}, 0);
    for (const auto& member : group) member->barrier();
    ASSERT_EQ(ranks.finish(group), everywhere(3, BBP_OK));
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(ranks.multicasts(i), 0U);
        EXPECT_EQ(ranks.ranks[i].device.transport_counters().packets_sent, 0U);
    }
}

// ---- Ahead and behind

TEST(Collectives, a_root_that_runs_ahead_is_stopped_by_the_window_and_goes_on) {
    GroupRanks ranks(3, 1, 1000);
    const auto group = ranks.open(1, {0, 1, 2});
    constexpr unsigned kCount = 100;
    std::vector<std::vector<std::byte>> out(kCount);
    unsigned sent = 0;
    const auto send_until_stopped = [&] {
        for (; sent < kCount; ++sent) {
            out[sent] = pattern(50, sent);
            group[0]->broadcast(out[sent], 0);
            if (const int result = group[0]->go_on(); result != BBP_OK) {
                ASSERT_EQ(result, BBP_EAGAIN);
                return;
            }
        }
    };
    send_until_stopped();
    ASSERT_EQ(sent, Group::kWindow);
    ASSERT_EQ(ranks.finish(group[0]), BBP_EAGAIN) << "nobody takes anything";

    // What the one takes does not help while the other takes nothing.
    unsigned taken[3] = {};
    const auto take = [&](unsigned member) {
        auto buffer = untouched(50);
        group[member]->broadcast(buffer, 0);
        ASSERT_EQ(ranks.finish(group[member]), BBP_OK);
        ASSERT_EQ(buffer, pattern(50, taken[member]++));
    };
    while (taken[1] < Group::kWindow) take(1);
    ASSERT_EQ(ranks.finish(group[0]), BBP_EAGAIN);
    while (taken[2] < Group::kWindow) take(2);
    ASSERT_EQ(ranks.finish(group[0]), BBP_OK);
    ++sent;
    for (unsigned i = 0; i < kCount; ++i) {
        send_until_stopped();
        if (taken[1] < kCount) take(1);
        if (taken[2] < kCount) take(2);
        if (sent < kCount && ranks.finish(group[0]) == BBP_OK) ++sent;
    }
    EXPECT_EQ(sent, kCount);
    EXPECT_EQ(taken[1], kCount);
    EXPECT_EQ(taken[2], kCount);
    EXPECT_EQ(ranks.multicasts(0), kCount);
}

TEST(Collectives, a_member_that_only_sends_in_gathers_is_stopped_by_the_window_and_goes_on) {
    GroupRanks ranks(2, 1, 1000);
    const auto group = ranks.open(1, {0, 1});
    std::vector<std::byte> own(4);
    unsigned sent = 0;
    for (;; ++sent) {
        own.assign(4, static_cast<std::byte>(sent));
        group[1]->gather(own, nullptr, 0);
        if (group[1]->go_on() != BBP_OK) break;
    }
    ASSERT_EQ(sent, Group::kWindow);
    const std::vector<std::byte> zero(4);
    for (unsigned i = 0; i <= Group::kWindow; ++i) {
        auto received = untouched(8);
        group[0]->gather(zero, received.data(), 0);
        if (i == Group::kWindow) {
            ASSERT_EQ(ranks.finish(group), everywhere(2, BBP_OK));
        } else {
            ASSERT_EQ(ranks.finish(group[0]), BBP_OK);
        }
        ASSERT_EQ(received[4], static_cast<std::byte>(i));
    }
}

TEST(Collectives, what_came_before_its_operation_is_kept) {
    GroupRanks ranks(4, 1, 1000);
    const auto group = ranks.open(1, {0, 1, 2, 3});
    // Member 3 has taken no part in any of this yet.
    auto buffers = buffers_of(4, 600, 0, 1);
    std::vector<Group*> early;
    for (unsigned i = 0; i < 3; ++i) {
        group[i]->broadcast(buffers[i], 0);
        early.push_back(group[i].get());
    }
    ASSERT_EQ(ranks.finish_some(early), everywhere(3, BBP_OK));
    auto more = buffers_of(4, 33, 2, 7);
    for (unsigned i = 0; i < 3; ++i) group[i]->broadcast(more[i], 2);
    ASSERT_EQ(ranks.finish_some(early), everywhere(3, BBP_OK));
    const auto own = pattern(20, 5);
    std::vector<std::vector<std::byte>> received(4, untouched(80));
    for (unsigned i = 0; i < 3; ++i) group[i]->gather(own, received[i].data(), std::nullopt);
    ASSERT_EQ(ranks.finish_some(early), everywhere(3, BBP_EAGAIN));

    group[3]->broadcast(buffers[3], 0);
    ASSERT_EQ(ranks.finish(group[3]), BBP_OK);
    group[3]->broadcast(more[3], 2);
    ASSERT_EQ(ranks.finish(group[3]), BBP_OK);
    group[3]->gather(own, received[3].data(), std::nullopt);
    ASSERT_EQ(ranks.finish(group), everywhere(4, BBP_OK));
    EXPECT_EQ(buffers[3], pattern(600, 1));
    EXPECT_EQ(more[3], pattern(33, 7));
    for (unsigned i = 0; i < 20; ++i) EXPECT_EQ(received[3][40 + i], own[i]);
}

TEST(Collectives, groups_of_one_id_without_a_common_member_do_not_meet) {
    GroupRanks ranks(4);
    const auto left = ranks.open(7, {0, 1}), right = ranks.open(7, {3, 2});
    auto of_left = buffers_of(2, 1000, 0, 1), of_right = buffers_of(2, 2000, 0, 2);
    begin_broadcast(left, of_left, 0);
    begin_broadcast(right, of_right, 0);
    ASSERT_EQ(ranks.finish_some({left[0].get(), left[1].get(), right[0].get(), right[1].get()}),
              everywhere(4, BBP_OK));
    EXPECT_EQ(of_left[1], pattern(1000, 1));
    EXPECT_EQ(of_right[1], pattern(2000, 2));
}

TEST(Collectives, of_two_groups_each_member_may_go_on_with_either_first) {
    GroupRanks ranks(3);
    const auto one = ranks.open(1, {0, 1, 2}), two = ranks.open(2, {2, 1, 0});
    auto of_one = buffers_of(3, 3000, 0, 1), of_two = buffers_of(3, 3000, 0, 2);
    // Rank 0 is the root of the first, rank 2 that of the second; rank 1 begins with the second.
    one[0]->broadcast(of_one[0], 0);
    two[0]->broadcast(of_two[0], 0);
    two[1]->broadcast(of_two[1], 0);
    ASSERT_EQ(ranks.finish_some({one[0].get(), two[0].get(), two[1].get()}), everywhere(3, BBP_OK));
    one[1]->broadcast(of_one[1], 0);
    one[2]->broadcast(of_one[2], 0);
    two[2]->broadcast(of_two[2], 0);
    ASSERT_EQ(ranks.finish_some({one[1].get(), one[2].get(), two[2].get()}), everywhere(3, BBP_OK));
    for (const auto& buffer : of_one) EXPECT_EQ(buffer, pattern(3000, 1));
    for (const auto& buffer : of_two) EXPECT_EQ(buffer, pattern(3000, 2));
}

TEST(Collectives, long_messages_of_the_same_ranks_go_on_meanwhile) {
    GroupRanks ranks(3, 5);
    ranks.ranks.pipes.refuse_one_in(3);
    const auto group = ranks.open(1, {0, 1, 2});
    std::vector<std::byte> out[3], in[3];
    for (unsigned r = 0; r < 3; ++r) out[r] = pattern(r == 0 ? 60'000 : 1'000'000, r);
    for (unsigned r = 0; r < 3; ++r) {
        in[r] = untouched(out[(r + 2) % 3].size());
        ranks.ranks[r].device.send({.to = (r + 1) % 3, .parts = parts_of(out[r])});
        ranks.ranks[r].device.receive(
            {.from = static_cast<Source>((r + 2) % 3), .parts = parts_of(in[r])});
    }
    for (unsigned i = 0; i < 100; ++i) expect_broadcast(ranks, group, 700, i % 3, i);
    ranks.ranks.run();
    for (unsigned r = 0; r < 3; ++r) {
        EXPECT_EQ(ranks.ranks[r].told.size(), 2U);
        EXPECT_EQ(in[r], out[(r + 2) % 3]);
    }
}

// ---- What goes wrong

std::vector<std::byte> cut(std::vector<std::byte> sent, std::size_t room) {
    sent.resize(room, kUntouched);
    return sent;
}

TEST(Collectives, a_member_that_gathers_blocks_of_another_size_is_told_and_goes_on) {
    for (const std::size_t other : std::initializer_list<std::size_t>{0, 99, 101, 600}) {
        GroupRanks ranks(3);
        const auto group = ranks.open(1, {0, 1, 2});
        auto out = pattern(100, 1), own = untouched(other), received = untouched(3 * other);
        group[0]->gather(out, nullptr, 1);
        group[2]->gather(out, nullptr, 1);
        group[1]->gather(own, received.data(), 1);
        EXPECT_EQ(ranks.finish(group), (std::vector<int>{BBP_OK, BBP_ESIZE, BBP_OK})) << other;
        EXPECT_EQ(cut(received, other), cut(out, other));
        expect_broadcast(ranks, group, 40'000, 0, 9);
    }
}

TEST(Collectives, a_member_that_expects_a_broadcast_of_another_size_is_told_and_goes_on) {
    for (const auto& [size, other] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
             {1, 2}, {100, 99}, {100, 101}, {100, 20'000}, {50'000, 99}, {50'000, 60'000}}) {
        SCOPED_TRACE(testing::Message() << size << " bytes for " << other);
        GroupRanks ranks(3);
        const auto group = ranks.open(1, {0, 1, 2});
        auto buffers = buffers_of(3, size, 0, 1);
        buffers[2] = untouched(other);
        begin_broadcast(group, buffers, 0);
        EXPECT_EQ(ranks.finish(group), (std::vector<int>{BBP_OK, BBP_OK, BBP_ESIZE}));
        EXPECT_EQ(buffers[1], pattern(size, 1));
        EXPECT_EQ(buffers[2], cut(pattern(size, 1), other));
        expect_broadcast(ranks, group, 40'000, 0, 9);
    }
}

TEST(Collectives, a_member_that_sends_to_a_group_that_is_not_open_harms_nobody) {
    GroupRanks ranks(3);
    const auto group = ranks.open(1, {0, 1});
    ranks.ranks.pipes.put(2, 0, group_packet(PacketType::group_message, 99, 0, 10));
    ranks.ranks.pipes.put(2, 0, group_packet(PacketType::group_message, 1, 0, 10));  // no member
    expect_broadcast(ranks, group, 10, 1, 1);
    ranks.ranks.run();
    EXPECT_EQ(ranks.ranks[0].device.counters().broken, 0U);
}

TEST(Collectives, a_member_that_exceeds_its_window_is_given_up_and_harms_nobody_else) {
    GroupRanks ranks(4);
    const auto group = ranks.open(1, {0, 1}), other = ranks.open(2, {2, 0, 3});
    for (unsigned i = 0; i < 2 * Group::kWindow; ++i)
        ranks.ranks.pipes.put(1, 0, group_packet(PacketType::group_message, 1, i, 10));
    ranks.ranks.run();
    EXPECT_TRUE(ranks.ranks[0].device.is_gone(1));
    EXPECT_EQ(ranks.ranks[0].device.counters().broken, 1U);
    expect_broadcast(ranks, other, 5000, 1, 1);
    auto buffer = untouched(10);
    for (unsigned i = 0; i <= Group::kWindow; ++i) {
        group[0]->broadcast(buffer, 1);
        EXPECT_EQ(ranks.finish(group[0]), i < Group::kWindow ? BBP_OK : BBP_EPEER) << i;
    }
}

TEST(Collectives, a_member_that_tells_of_more_than_was_sent_does_not_widen_the_window) {
    GroupRanks ranks(2, 1, 1000);
    const auto group = ranks.open(1, {0, 1});
    ranks.ranks.pipes.put(1, 0, group_packet(PacketType::group_flow, 1, 1'000'000));
    ranks.ranks.run();
    auto out = pattern(10, 1);
    unsigned sent = 0;
    for (; sent < 100; ++sent) {
        group[0]->broadcast(out, 0);
        if (group[0]->go_on() != BBP_OK) break;
    }
    EXPECT_EQ(sent, Group::kWindow);
}

TEST(Collectives, a_members_death_ends_each_operation_at_all_others_and_the_group_stays_so) {
    const auto begin = [](Group& member, unsigned what, std::vector<std::byte>& bytes) {
        switch (what) {
            case 0: return member.broadcast(bytes, 1);
            case 1: return member.gather(std::span(bytes).first(10), bytes.data(), std::nullopt);
            default: return member.barrier();
        }
    };
    for (unsigned what = 0; what < 4; ++what) {
        SCOPED_TRACE(what);
        GroupRanks ranks(4);
        const auto group =
            ranks.open(1, {0, 1, 2, 3}, what == 3 ? std::optional(2U) : std::nullopt);
        const auto apart = ranks.open(2, {0, 2, 3});
        std::vector<std::vector<std::byte>> buffers(4, untouched(40));
        ranks.kill(1);
        const std::vector<Group*> living = {group[0].get(), group[2].get(), group[3].get()};
        for (Group* member : living) begin(*member, what, buffers[member->own()]);
        EXPECT_EQ(ranks.finish_some(living), everywhere(3, BBP_EPEER));
        for (unsigned again = 0; again < 3; ++again) {
            for (Group* member : living) begin(*member, again, buffers[member->own()]);
            EXPECT_EQ(ranks.finish_some(living), everywhere(3, BBP_EPEER));
        }
        expect_broadcast(ranks, apart, 2000, 2, 1);
    }
}

TEST(Collectives, what_a_member_had_sent_before_its_death_still_counts) {
    GroupRanks ranks(3);
    const auto group = ranks.open(1, {0, 1, 2});
    auto buffers = buffers_of(3, 200, 1, 1);
    group[1]->broadcast(buffers[1], 1);
    ASSERT_EQ(group[1]->go_on(), BBP_OK);
    ranks.kill(1);
    group[0]->broadcast(buffers[0], 1);
    group[2]->broadcast(buffers[2], 1);
    ASSERT_EQ(ranks.finish_some({group[0].get(), group[2].get()}), everywhere(2, BBP_OK));
    EXPECT_EQ(buffers[0], pattern(200, 1));
    EXPECT_EQ(buffers[2], pattern(200, 1));
}

TEST(Collectives, a_member_that_has_done_its_part_may_leave_before_the_others_have) {
    GroupRanks ranks(3);
    const auto group = ranks.open(1, {0, 1, 2});
    const auto own = pattern(10, 1);
    auto received = untouched(30);
    group[0]->gather(own, received.data(), 0);
    group[1]->gather(own, nullptr, 0);
    ASSERT_EQ(group[1]->go_on(), BBP_OK);
    ranks.kill(1);
    ranks.ranks.run();
    ASSERT_EQ(group[0]->go_on(), BBP_EAGAIN);  // of member 2
    group[2]->gather(own, nullptr, 0);
    EXPECT_EQ(ranks.finish_some({group[0].get(), group[2].get()}), everywhere(2, BBP_OK));
    EXPECT_NE(received, untouched(30));
}

TEST(Collectives, what_comes_after_an_operation_has_failed_is_not_written_to_its_buffers) {
    for (const bool begins_again : {false, true}) {
        GroupRanks ranks(3);
        const auto group = ranks.open(1, {0, 1, 2});
        const auto own = pattern(10, 1);
        auto received = untouched(30);
        group[0]->gather(own, received.data(), 0);
        ranks.kill(1);
        ASSERT_EQ(ranks.finish(group[0]), BBP_EPEER);
        if (begins_again) {
            group[0]->gather(own, received.data(), 0);
            ASSERT_EQ(group[0]->go_on(), BBP_EPEER);
        }
        std::fill(received.begin(), received.end(), kUntouched);
        group[2]->gather(own, nullptr, 0);
        group[2]->go_on();
        ranks.ranks.run();
        EXPECT_EQ(received, untouched(30));
    }
}

}  // namespace
}  // namespace mpi_channel
