// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/device.hpp"

#include "tests/support/messages_of_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpi_channel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using DeviceTest = MessagesOfRanks;

const std::size_t kDeviceSizes[] = {0,     1,     8,          492,       493,    5000,
                                    65536, 65537, kEagerMost, 1'000'000, 3 << 20};

TEST_F(DeviceTest,
       messages_of_any_size_and_in_any_parts_arrive_whether_their_receive_waits_or_not) {
    for (const std::size_t size : kDeviceSizes) {
        for (const Way& way : {Way{.pieces_there = 1}, Way{.is_expected = false, .pieces_there = 1},
                               Way{.pieces = 3, .pieces_there = 7}})
            expect_arrives(size, way);
    }
    EXPECT_GT(counters(0).short_sent, 0U);
    EXPECT_GT(counters(0).eager_sent, 0U);
    EXPECT_GT(counters(0).rendezvous_sent, 0U);
}

TEST_F(DeviceTest, the_sender_s_word_and_tag_and_kind_come_along) {
    auto out = pattern(9, 1), in = pattern(9, 2);
    auto tagged = pattern(9, 3);
    receive(1, 0, 0, tagged);
    ranks[0].device.send({.to = 1, .untagged = true, .data = 0xdeadbeef, .parts = parts_of(out)});
    ranks.run();
    EXPECT_THAT(ranks[1].told, IsEmpty()) << "a receive of tagged messages";
    ranks[1].device.receive({.untagged = true, .parts = parts_of(in)});
    const auto told = take(1);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].data, 0xdeadbeef);
    EXPECT_TRUE(told[0].untagged);
}

TEST_F(DeviceTest, unexpected_messages_take_no_more_than_their_credit_and_all_come) {
    auto out = pattern(kEagerMost, 1), in = pattern(kEagerMost, 2);
    for (unsigned i = 0; i < 100; ++i) send(0, 1, 1, out);
    ranks.run();
    EXPECT_EQ(counters(0).eager_sent, kCredit / (kEagerMost + kCostBytes));
    EXPECT_GT(counters(0).out_of_credit, 0U);
    for (unsigned i = 0; i < 100; ++i) receive(1, 0, 1, in);
    ranks.run();
    EXPECT_EQ(take(0).size(), 100U);
    EXPECT_EQ(take(1).size(), 100U);
    const auto asked = counters(0).rendezvous_sent;
    for (unsigned i = 0; i < 100; ++i) {
        receive(1, 0, 1, in);
        send(0, 1, 1, out);
        ranks.run();
    }
    EXPECT_EQ(counters(0).rendezvous_sent, asked) << "credit comes back";
}

TEST_F(DeviceTest, a_message_that_is_too_long_is_cut) {
    for (const std::size_t size : kDeviceSizes) {
        for (const bool is_expected : {true, false}) {
            if (size == 0) continue;
            auto out = pattern(size, 3);
            std::vector<std::byte> half(size / 2);
            if (is_expected) receive(1, 0, 7, half);
            send(0, 1, 7, out);
            ranks.run();
            if (!is_expected) receive(1, 0, 7, half);
            ranks.run();
            const auto told = take(1);
            ASSERT_EQ(told.size(), 1U);
            EXPECT_EQ(told[0].status, Status::cut);
            EXPECT_EQ(told[0].bytes, size / 2);
            EXPECT_EQ(told[0].envelope.size, size);
            EXPECT_TRUE(std::equal(half.begin(), half.end(), out.begin()));
            take(0);
        }
    }
    auto after = pattern(10, 1), in = pattern(10, 2);
    receive(1, 0, 8, in);
    send(0, 1, 8, after);
    ranks.run();
    EXPECT_TRUE(in == after) << "what follows is whole";
}

TEST_F(DeviceTest, one_receive_takes_several_messages_and_tells_the_last) {
    auto out = pattern(100'000, 1);
    std::vector<std::byte> in(250'000);
    ranks[1].device.receive({.untagged = true, .parts = parts_of(in), .least = 60'000});
    for (const std::size_t size : {out.size(), std::size_t{10}, std::size_t{90'000}})
        ranks[0].device.send({.to = 1, .untagged = true, .parts = {{out.data(), size}}});
    ranks.run();
    auto told = take(1);
    ASSERT_EQ(told.size(), 3U);
    std::sort(told.begin(), told.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    EXPECT_EQ(told[0].at, 0U);
    EXPECT_EQ(told[1].at, 100'000U);
    EXPECT_EQ(told[2].at, 100'010U);
    EXPECT_EQ(std::count_if(told.begin(), told.end(), [](const auto& c) { return c.last; }), 1);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + 90'000, in.begin() + 100'010));
}

TEST_F(DeviceTest, a_receive_that_waits_can_be_cancelled_once) {
    auto in = pattern(10, 1), out = pattern(10, 2);
    receive(1, 0, 1, in);
    EXPECT_FALSE(ranks[1].device.cancel(&out));
    EXPECT_TRUE(ranks[1].device.cancel(&in));
    EXPECT_FALSE(ranks[1].device.cancel(&in));
    const auto told = take(1);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].status, Status::cancelled);
    EXPECT_EQ(told[0].context, &in);
    send(0, 1, 1, out);
    ranks.run();
    EXPECT_THAT(ranks[1].told, IsEmpty());
}

TEST_F(DeviceTest, of_two_receives_with_one_context_the_first_is_cancelled_first) {
    auto first = pattern(10, 1), second = pattern(10, 2);
    for (const std::uint64_t tag : {1U, 2U})
        ranks[1].device.receive(
            {.from = 0, .tag = tag, .parts = parts_of(tag == 1 ? first : second), .context = this});
    EXPECT_TRUE(ranks[1].device.cancel(this));
    EXPECT_TRUE(ranks[1].device.cancel(this));
    const auto told = take(1);
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[0].envelope.tag, 1U);
    EXPECT_EQ(told[1].envelope.tag, 2U);
}

TEST_F(DeviceTest, a_message_is_peeked_claimed_and_received_or_discarded) {
    for (const std::size_t size : kDeviceSizes) {
        auto out = pattern(size, 1), next = pattern(size, 2), in = pattern(size, 3);
        EXPECT_EQ(ranks[1].device.peek({kAnySource, 5, 0}, false), nullptr);
        send(0, 1, 5, out);
        send(0, 1, 5, next);
        ranks.run();
        Unexpected* message = ranks[1].device.peek({kAnySource, 5, 0}, false);
        ASSERT_NE(message, nullptr) << size;
        EXPECT_EQ(message->envelope.size, size);
        ASSERT_EQ(ranks[1].device.claim({0, 5, 0}, false), message);
        ranks[1].device.discard(*message);
        message = ranks[1].device.claim({0, 5, 0}, false);
        ASSERT_NE(message, nullptr);
        EXPECT_EQ(ranks[1].device.peek({0, 5, 0}, false), nullptr);
        ranks[1].device.receive_claimed(*message, {.parts = parts_of(in, 2), .context = &in});
        ranks.run();
        const auto told = take(1);
        ASSERT_EQ(told.size(), 1U) << size;
        EXPECT_EQ(told[0].context, &in);
        EXPECT_TRUE(in == next) << size;
        EXPECT_EQ(take(0).size(), 2U) << "the discarded one has left, too";
    }
}

TEST_F(DeviceTest, a_send_after_its_match_is_over_only_then) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{100'000}}) {
        auto out = pattern(size, 1), in = pattern(size, 2);
        ranks[0].device.send({.to = 1, .parts = parts_of(out), .after_match = true});
        ranks.run();
        EXPECT_THAT(ranks[0].told, IsEmpty());
        receive(1, 0, 0, in);
        ranks.run();
        EXPECT_EQ(take(0).size(), 1U);
        EXPECT_EQ(take(1).size(), 1U);
        EXPECT_TRUE(in == out);
    }
}

TEST_F(DeviceTest, copied_bytes_are_the_callers_at_once_and_silent_sends_say_nothing) {
    std::vector<std::byte> in(400);
    for (unsigned i = 0; i < 50; ++i) {
        auto out = pattern(400, i);
        ranks[0].device.send(
            {.to = 1, .tag = i, .parts = parts_of(out), .copy = true, .silent = true});
        std::fill(out.begin(), out.end(), std::byte{});
    }
    EXPECT_TRUE(ranks[0].device.has_backlog());
    for (unsigned i = 0; i < 50; ++i) {
        receive(1, 0, i, in);
        ranks.run();
        EXPECT_TRUE(in == pattern(400, i)) << i;
    }
    EXPECT_FALSE(ranks[0].device.has_backlog());
    EXPECT_THAT(ranks[0].told, IsEmpty());
}

TEST_F(DeviceTest, requests_with_a_dead_rank_end_as_gone_and_others_go_on) {
    auto out = pattern(8, 1), large = pattern(1'000'000, 1), in = pattern(1'000'000, 2);
    auto any = pattern(8, 3);
    send(0, 1, 1, large);  // asks, and is never answered
    send(1, 0, 2, out);    // whole, unexpected
    send(1, 0, 3, large);  // asks
    ranks.run();
    ranks.kill(1);
    receive(0, 1, 9, in);
    receive(0, kAnySource, 9, any);
    ranks.run();
    send(0, 1, 4, out);
    EXPECT_THAT(take_statuses(0), ElementsAre(Status::gone, Status::gone, Status::gone));
    EXPECT_TRUE(ranks[0].device.is_gone(1));
    receive(0, 1, 2, any);
    EXPECT_THAT(take_statuses(0), ElementsAre(Status::ok)) << "what it had sent is received";
    receive(0, 1, 3, in);
    EXPECT_THAT(take_statuses(0), ElementsAre(Status::gone)) << "what it had only announced is not";
    send(2, 0, 9, out);
    ranks.run();
    ASSERT_EQ(ranks[0].told.size(), 1U);
    EXPECT_EQ(ranks[0].told[0].context, &any);
}

TEST_F(DeviceTest, what_was_claimed_of_a_rank_that_then_dies_ends_as_gone_once) {
    auto large = pattern(1'000'000, 1), eager = pattern(kEagerMost, 2), in = pattern(8, 3);
    send(1, 0, 1, large);  // asks
    ranks.run();
    send(1, 0, 2, eager);  // the pipe holds its beginning
    ranks[0].device.progress();
    Unexpected* asked = ranks[0].device.claim({1, 1, 0}, false);
    Unexpected* begun = ranks[0].device.claim({1, 2, 0}, false);
    ASSERT_NE(asked, nullptr);
    ASSERT_NE(begun, nullptr);
    ASSERT_LT(begun->arrived, kEagerMost);
    ranks.kill(1);
    ranks.run();
    EXPECT_TRUE(ranks[0].device.is_gone(1));
    auto out = pattern(8, 4);
    send(2, 0, 1, out);  // takes a place of its own
    ranks.run();
    for (Unexpected* message : {asked, begun}) {
        ranks[0].device.receive_claimed(*message, {.parts = parts_of(in)});
        EXPECT_THAT(take_statuses(0), ElementsAre(Status::gone));
    }
    receive(0, 2, 1, in);
    ASSERT_EQ(ranks[0].told.size(), 1U);
    EXPECT_TRUE(in == out);
}

TEST_F(DeviceTest, receives_from_anybody_end_when_nobody_is_left) {
    auto in = pattern(8, 1), late = pattern(8, 2);
    receive(0, kAnySource, 1, in);
    ranks.kill(1);
    ranks.run();
    EXPECT_THAT(ranks[0].told, IsEmpty());
    ranks.kill(2);
    ranks.run();
    receive(0, kAnySource, 1, late);
    EXPECT_THAT(take_statuses(0), ElementsAre(Status::gone, Status::gone));
}

TEST_F(DeviceTest, a_rank_that_sends_what_no_device_sends_is_given_up_and_others_go_on) {
    std::mt19937 random(5);
    for (unsigned i = 0; i < 2000; ++i) {
        std::vector<std::byte> nonsense(random() % 60);
        for (auto& byte : nonsense) byte = static_cast<std::byte>(random() % 256);
        if (!nonsense.empty()) nonsense[0] = static_cast<std::byte>(random() % 16);
        if (nonsense.size() > 8) std::fill(nonsense.begin() + 1, nonsense.begin() + 8, std::byte{});
        ranks.pipes.put(1, 0, nonsense);
    }
    ranks.pipes.put(1, 0, std::vector<std::byte>(5000));
    auto out = pattern(100'000, 1), in = pattern(100'000, 2);
    send(2, 0, 1, out);
    receive(0, 2, 1, in);
    ranks.silence(1);
    ranks.run();
    EXPECT_EQ(counters(0).broken, 1U);
    EXPECT_TRUE(in == out);
    EXPECT_TRUE(ranks.pipes.empty());
}

TEST_F(DeviceTest, a_sender_that_announces_more_than_leaves_unasked_is_given_up) {
    Packet packet;
    packet.header.type = PacketType::long_message;
    packet.size = kEagerMost + 1;
    ranks.pipes.put(1, 0, written(packet));
    ranks.run();
    EXPECT_EQ(counters(0).broken, 1U);
    EXPECT_EQ(counters(0).unexpected, 0U);
}

TEST_F(DeviceTest, a_sender_of_another_rank_s_bytes_is_given_up) {
    auto out = pattern(200'000, 1), in = pattern(200'000, 2);
    receive(0, 2, 1, in);
    send(2, 0, 1, out);
    while (ranks[0].device.progress()) {
    }
    Packet packet;
    packet.header.type = PacketType::data;
    packet.receive = Pool<int>::kMax;  // the first delivery's number
    ranks.pipes.put(1, 0, written(packet));
    ranks.silence(1);
    ranks.run();
    EXPECT_EQ(counters(0).broken, 1U);
    EXPECT_TRUE(in == out);
}

TEST_F(DeviceTest, what_waits_for_room_leaves_together_and_in_order) {
    constexpr unsigned kMessages = 500;
    std::vector<std::vector<std::byte>> out, in(kMessages);
    for (unsigned i = 0; i < kMessages; ++i) {
        out.push_back(pattern(i % 97 == 0 ? 700'000 : i % 60, i));
        in[i].resize(out[i].size());
    }
    for (auto& bytes : out) send(0, 1, 1, bytes);
    for (auto& bytes : in) receive(1, 0, 1, bytes);
    ranks.run();
    for (unsigned i = 0; i < kMessages; ++i) ASSERT_TRUE(in[i] == out[i]) << i;
    EXPECT_EQ(ranks[0].told.size(), kMessages);
    EXPECT_LT(ranks.pipes.of(0).counters().packets_sent, kMessages / 3);
}

TEST_F(DeviceTest, what_is_no_bundle_ends_the_conversation) {
    const auto packet = [](PacketType type, std::vector<std::byte> tail = {}) {
        Packet its;
        its.header.type = type;
        its.size = 1000;
        auto bytes = written(its);
        bytes.insert(bytes.end(), tail.begin(), tail.end());
        return bytes;
    };
    const auto bundled = [](std::vector<std::byte> bytes, std::size_t length) {
        const auto word = static_cast<std::uint32_t>(length);
        std::vector<std::byte> whole(sizeof word);
        std::memcpy(whole.data(), &word, sizeof word);
        whole.insert(whole.end(), bytes.begin(), bytes.end());
        return whole;
    };
    const auto sound = packet(PacketType::short_message, pattern(5, 1));
    const auto nested = packet(PacketType::bundle, bundled(sound, sound.size()));
    auto announcing = bundled(packet(PacketType::long_message), kHeaderBytes + 8);
    const auto behind = bundled(sound, sound.size());
    announcing.insert(announcing.end(), behind.begin(), behind.end());
    const std::vector<std::vector<std::byte>> wrong = {
        pattern(3, 1),                     // no length
        bundled(sound, sound.size() + 1),  // longer than what is there
        bundled(sound, kHeaderBytes - 1),  // no packet
        bundled(nested, nested.size()),    // a bundle in it
        announcing,                        // bulk would have to follow
    };
    for (const auto& bytes : wrong) {
        DeviceRanks two(2);
        two.pipes.put(1, 0, packet(PacketType::bundle, behind));
        two.pipes.put(1, 0, packet(PacketType::bundle, bytes));
        while (two[0].device.progress()) {
        }
        EXPECT_EQ(two[0].device.counters().unexpected, &bytes == &wrong.back() ? 2U : 1U);
        EXPECT_EQ(two[0].device.counters().broken, 1U);
    }
}

}  // namespace
}  // namespace mpi_channel
