// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/device.hpp"

#include "tests/support/pipes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace mpi_channel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::byte byte_of(unsigned seed, std::size_t i) {
    return static_cast<std::byte>(seed * 131 + i * 7 + (i >> 8));
}

std::vector<std::byte> bytes_of(std::size_t size, unsigned seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_of(seed, i);
    return bytes;
}

/// Cut at some places.
Parts parts_of(std::vector<std::byte>& bytes, unsigned pieces) {
    Parts parts;
    for (unsigned i = 0; i < pieces; ++i) {
        const std::size_t from = bytes.size() * i / pieces, to = bytes.size() * (i + 1) / pieces;
        parts.push_back({bytes.data() + from, to - from});
    }
    return parts;
}

/// A device, and what it has told.
class Rank final : public Completions {
public:
    Rank(Pipe& pipe) : device(pipe, *this) {}

    void completed(const Completion& completion) override { told.push_back(completion); }
    std::vector<Completion> take() { return std::exchange(told, {}); }

    void send(unsigned to, std::uint64_t tag, std::vector<std::byte>& bytes,
              void* context = nullptr) {
        SendOrder order;
        order.to = to;
        order.tag = tag;
        order.parts = parts_of(bytes, 1);
        order.context = context;
        device.send(order);
    }
    void receive(Source from, std::uint64_t tag, std::vector<std::byte>& bytes,
                 void* context = nullptr) {
        ReceiveOrder order;
        order.from = from;
        order.tag = tag;
        order.parts = parts_of(bytes, 1);
        order.context = context;
        device.receive(order);
    }

    Device<Pipe> device;
    std::vector<Completion> told;
};

class DeviceTest : public testing::Test {
protected:
    explicit DeviceTest(unsigned ranks = 2, unsigned seed = 1) : pipes(ranks, seed) {
        for (unsigned r = 0; r < ranks; ++r) all.push_back(std::make_unique<Rank>(pipes.of(r)));
    }
    /// Until nothing moves any more.
    void run() {
        for (unsigned quiet = 0; quiet < 4000;) {
            bool any = false;
            for (unsigned r = 0; r < all.size(); ++r)
                any |= !is_dead[r] && all[r]->device.progress();
            quiet = any ? 0 : quiet + 1;
        }
    }
    void kill(unsigned rank) {
        pipes.kill(rank);
        is_dead[rank] = true;
    }
    Rank& rank(unsigned r) { return *all[r]; }

    Pipes pipes;
    std::vector<std::unique_ptr<Rank>> all;
    std::map<unsigned, bool> is_dead;
};

const std::size_t kDeviceSizes[] = {0,     1,     8,          492,       493,    5000,
                                    65536, 65537, kEagerMost, 1'000'000, 3 << 20};

TEST_F(DeviceTest, messages_of_any_size_arrive_whether_their_receive_waits_or_not) {
    for (const std::size_t size : kDeviceSizes) {
        for (const bool is_expected : {true, false}) {
            auto out = bytes_of(size, 3), in = bytes_of(size, 4);
            if (is_expected) rank(1).receive(0, 7, in, &in);
            rank(0).send(1, 7, out, &out);
            run();
            if (!is_expected) rank(1).receive(0, 7, in, &in);
            run();
            const auto sent = rank(0).take(), received = rank(1).take();
            ASSERT_EQ(sent.size(), 1U) << size;
            EXPECT_EQ(sent[0].context, &out);
            EXPECT_EQ(sent[0].status, Status::ok);
            ASSERT_EQ(received.size(), 1U) << size;
            EXPECT_EQ(received[0].context, &in);
            EXPECT_EQ(received[0].status, Status::ok);
            EXPECT_EQ(received[0].bytes, size);
            EXPECT_EQ(received[0].envelope.source, 0U);
            EXPECT_EQ(received[0].envelope.tag, 7U);
            EXPECT_TRUE(in == out) << size;
        }
    }
    EXPECT_GT(rank(0).device.counters().short_sent, 0U);
    EXPECT_GT(rank(0).device.counters().eager_sent, 0U);
    EXPECT_GT(rank(0).device.counters().rendezvous_sent, 0U);
}

TEST_F(DeviceTest, parts_on_both_sides_need_not_agree) {
    for (const std::size_t size : kDeviceSizes) {
        auto out = bytes_of(size, 5), in = bytes_of(size, 6);
        SendOrder send;
        send.to = 1;
        send.parts = parts_of(out, 3);
        ReceiveOrder receive;
        receive.from = 0;
        receive.parts = parts_of(in, 7);
        rank(0).device.send(send);
        rank(1).device.receive(receive);
        run();
        EXPECT_TRUE(in == out) << size;
    }
}

TEST_F(DeviceTest, the_sender_s_word_and_tag_and_kind_come_along) {
    auto out = bytes_of(9, 1), in = bytes_of(9, 2);
    SendOrder send;
    send.to = 1;
    send.untagged = true;
    send.data = 0xdeadbeef;
    send.parts = parts_of(out, 1);
    auto tagged = bytes_of(9, 3);
    rank(1).receive(0, 0, tagged);
    rank(0).device.send(send);
    run();
    EXPECT_THAT(rank(1).told, IsEmpty()) << "a receive of tagged messages";
    ReceiveOrder receive;
    receive.untagged = true;
    receive.parts = parts_of(in, 1);
    rank(1).device.receive(receive);
    const auto told = rank(1).take();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].data, 0xdeadbeef);
    EXPECT_TRUE(told[0].untagged);
}

TEST_F(DeviceTest, messages_of_one_sender_are_received_in_their_order_whatever_their_protocol) {
    std::vector<std::vector<std::byte>> out, in;
    for (unsigned i = 0; i < 60; ++i)
        out.push_back(bytes_of(kDeviceSizes[i * 5 % std::size(kDeviceSizes)], i));
    for (auto& bytes : out) rank(0).send(1, 1, bytes);
    for (unsigned i = 0; i < 60; ++i) in.push_back(bytes_of(3 << 20, 99));
    for (unsigned i = 0; i < 60; ++i) {
        if (i % 7 == 3) run();
        rank(1).receive(i % 2 == 0 ? 0 : kAnySource, 1, in[i], &in[i]);
    }
    run();
    std::map<void*, std::size_t> bytes;
    for (const auto& told : rank(1).take()) bytes[told.context] = told.bytes;
    ASSERT_EQ(bytes.size(), 60U);
    for (unsigned i = 0; i < 60; ++i) {
        ASSERT_EQ(bytes[&in[i]], out[i].size()) << i;
        EXPECT_TRUE(std::equal(out[i].begin(), out[i].end(), in[i].begin())) << i;
    }
}

TEST_F(DeviceTest, two_that_send_to_each_other_first_do_not_wait_for_each_other) {
    std::vector<std::vector<std::byte>> out(2, bytes_of(100'000, 1)), in(2, bytes_of(100'000, 2));
    for (unsigned i = 0; i < 100; ++i) {
        for (unsigned r : {0U, 1U}) rank(r).send(1 - r, i, out[r]);
    }
    run();
    for (unsigned i = 0; i < 100; ++i) {
        for (unsigned r : {0U, 1U}) rank(r).receive(1 - r, i, in[r]);
    }
    run();
    for (unsigned r : {0U, 1U}) EXPECT_EQ(rank(r).take().size(), 200U);
}

TEST_F(DeviceTest, unexpected_messages_take_no_more_than_their_credit_and_all_come) {
    auto out = bytes_of(kEagerMost, 1), in = bytes_of(kEagerMost, 2);
    for (unsigned i = 0; i < 100; ++i) rank(0).send(1, 1, out);
    run();
    EXPECT_EQ(rank(0).device.counters().eager_sent, kCredit / (kEagerMost + kCostBytes));
    EXPECT_GT(rank(0).device.counters().out_of_credit, 0U);
    for (unsigned i = 0; i < 100; ++i) rank(1).receive(0, 1, in);
    run();
    EXPECT_EQ(rank(0).take().size(), 100U);
    EXPECT_EQ(rank(1).take().size(), 100U);
    const auto asked = rank(0).device.counters().rendezvous_sent;
    for (unsigned i = 0; i < 100; ++i) {
        rank(1).receive(0, 1, in);
        rank(0).send(1, 1, out);
        run();
    }
    EXPECT_EQ(rank(0).device.counters().rendezvous_sent, asked) << "credit comes back";
}

TEST_F(DeviceTest, a_message_that_is_too_long_is_cut) {
    for (const std::size_t size : kDeviceSizes) {
        for (const bool is_expected : {true, false}) {
            if (size == 0) continue;
            auto out = bytes_of(size, 3), in = bytes_of(size, 4);
            const auto before = in;
            std::vector<std::byte> half(size / 2);
            if (is_expected) rank(1).receive(0, 7, half);
            rank(0).send(1, 7, out);
            run();
            if (!is_expected) rank(1).receive(0, 7, half);
            run();
            const auto told = rank(1).take();
            ASSERT_EQ(told.size(), 1U);
            EXPECT_EQ(told[0].status, Status::cut);
            EXPECT_EQ(told[0].bytes, size / 2);
            EXPECT_EQ(told[0].envelope.size, size);
            EXPECT_TRUE(std::equal(half.begin(), half.end(), out.begin()));
            rank(0).take();
        }
    }
    auto after = bytes_of(10, 1), in = bytes_of(10, 2);
    rank(1).receive(0, 8, in);
    rank(0).send(1, 8, after);
    run();
    EXPECT_TRUE(in == after) << "what follows is whole";
}

TEST_F(DeviceTest, one_receive_takes_several_messages_and_tells_the_last) {
    auto out = bytes_of(100'000, 1);
    std::vector<std::byte> in(250'000);
    ReceiveOrder receive;
    receive.untagged = true;
    receive.least = 60'000;
    receive.parts = parts_of(in, 1);
    rank(1).device.receive(receive);
    SendOrder send;
    send.to = 1;
    send.untagged = true;
    send.parts = parts_of(out, 1);
    rank(0).device.send(send);
    send.parts[0].iov_len = 10;
    rank(0).device.send(send);
    send.parts[0].iov_len = 90'000;
    rank(0).device.send(send);
    run();
    auto told = rank(1).take();
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
    auto in = bytes_of(10, 1), out = bytes_of(10, 2);
    rank(1).receive(0, 1, in, &in);
    EXPECT_FALSE(rank(1).device.cancel(&out));
    EXPECT_TRUE(rank(1).device.cancel(&in));
    EXPECT_FALSE(rank(1).device.cancel(&in));
    const auto told = rank(1).take();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].status, Status::cancelled);
    EXPECT_EQ(told[0].context, &in);
    rank(0).send(1, 1, out);
    run();
    EXPECT_THAT(rank(1).told, IsEmpty());
}

TEST_F(DeviceTest, of_two_receives_with_one_context_the_first_is_cancelled_first) {
    auto first = bytes_of(10, 1), second = bytes_of(10, 2);
    rank(1).receive(0, 1, first, this);
    rank(1).receive(0, 2, second, this);
    EXPECT_TRUE(rank(1).device.cancel(this));
    EXPECT_TRUE(rank(1).device.cancel(this));
    const auto told = rank(1).take();
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[0].envelope.tag, 1U);
    EXPECT_EQ(told[1].envelope.tag, 2U);
}

TEST_F(DeviceTest, a_message_is_peeked_claimed_and_received_or_discarded) {
    for (const std::size_t size : kDeviceSizes) {
        auto out = bytes_of(size, 1), next = bytes_of(size, 2), in = bytes_of(size, 3);
        EXPECT_EQ(rank(1).device.peek({kAnySource, 5, 0}, false), nullptr);
        rank(0).send(1, 5, out);
        rank(0).send(1, 5, next);
        run();
        Unexpected* message = rank(1).device.peek({kAnySource, 5, 0}, false);
        ASSERT_NE(message, nullptr) << size;
        EXPECT_EQ(message->envelope.size, size);
        ASSERT_EQ(rank(1).device.claim({0, 5, 0}, false), message);
        rank(1).device.discard(*message);
        message = rank(1).device.claim({0, 5, 0}, false);
        ASSERT_NE(message, nullptr);
        EXPECT_EQ(rank(1).device.peek({0, 5, 0}, false), nullptr);
        ReceiveOrder order;
        order.parts = parts_of(in, 2);
        order.context = &in;
        rank(1).device.receive_claimed(*message, order);
        run();
        const auto told = rank(1).take();
        ASSERT_EQ(told.size(), 1U) << size;
        EXPECT_EQ(told[0].context, &in);
        EXPECT_TRUE(in == next) << size;
        EXPECT_EQ(rank(0).take().size(), 2U) << "the discarded one has left, too";
    }
}

TEST_F(DeviceTest, a_send_after_its_match_is_over_only_then) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{100'000}}) {
        auto out = bytes_of(size, 1), in = bytes_of(size, 2);
        SendOrder send;
        send.to = 1;
        send.after_match = true;
        send.parts = parts_of(out, 1);
        rank(0).device.send(send);
        run();
        EXPECT_THAT(rank(0).told, IsEmpty());
        rank(1).receive(0, 0, in);
        run();
        EXPECT_EQ(rank(0).take().size(), 1U);
        EXPECT_EQ(rank(1).take().size(), 1U);
        EXPECT_TRUE(in == out);
    }
}

TEST_F(DeviceTest, copied_bytes_are_the_callers_at_once_and_silent_sends_say_nothing) {
    std::vector<std::byte> in(400);
    for (unsigned i = 0; i < 50; ++i) {
        auto out = bytes_of(400, i);
        SendOrder send;
        send.to = 1;
        send.tag = i;
        send.copy = send.silent = true;
        send.parts = parts_of(out, 1);
        rank(0).device.send(send);
        std::fill(out.begin(), out.end(), std::byte{});
    }
    EXPECT_TRUE(rank(0).device.has_backlog());
    for (unsigned i = 0; i < 50; ++i) {
        rank(1).receive(0, i, in);
        run();
        EXPECT_TRUE(in == bytes_of(400, i)) << i;
    }
    EXPECT_FALSE(rank(0).device.has_backlog());
    EXPECT_THAT(rank(0).told, IsEmpty());
}

TEST_F(DeviceTest, a_message_to_the_sender_itself_arrives) {
    for (const std::size_t size : kDeviceSizes) {
        auto out = bytes_of(size, 1), in = bytes_of(size, 2);
        rank(0).send(0, 1, out);
        rank(0).receive(0, 1, in);
        run();
        EXPECT_EQ(rank(0).take().size(), 2U);
        EXPECT_TRUE(in == out) << size;
    }
}

class ThreeDevices : public DeviceTest {
protected:
    ThreeDevices() : DeviceTest(3) {}
};

TEST_F(ThreeDevices, requests_with_a_dead_rank_end_as_gone_and_others_go_on) {
    auto out = bytes_of(8, 1), large = bytes_of(1'000'000, 1), in = bytes_of(1'000'000, 2);
    auto any = bytes_of(8, 3);
    rank(0).send(1, 1, large);  // asks, and is never answered
    rank(1).send(0, 2, out);    // whole, unexpected
    rank(1).send(0, 3, large);  // asks
    run();
    kill(1);
    rank(0).receive(1, 9, in, &in);
    rank(0).receive(kAnySource, 9, any, &any);
    run();
    rank(0).send(1, 4, out);
    std::vector<Status> status;
    for (const auto& told : rank(0).take()) status.push_back(told.status);
    EXPECT_THAT(status, ElementsAre(Status::gone, Status::gone, Status::gone));
    EXPECT_TRUE(rank(0).device.is_gone(1));
    rank(0).receive(1, 2, any);
    ASSERT_EQ(rank(0).told.size(), 1U);
    EXPECT_EQ(rank(0).take()[0].status, Status::ok) << "what it had sent is received";
    rank(0).receive(1, 3, in);
    ASSERT_EQ(rank(0).told.size(), 1U);
    EXPECT_EQ(rank(0).take()[0].status, Status::gone) << "what it had only announced is not";
    rank(2).send(0, 9, out);
    run();
    ASSERT_EQ(rank(0).told.size(), 1U);
    EXPECT_EQ(rank(0).told[0].context, &any);
}

TEST_F(ThreeDevices, what_was_claimed_of_a_rank_that_then_dies_ends_as_gone_once) {
    auto large = bytes_of(1'000'000, 1), eager = bytes_of(kEagerMost, 2), in = bytes_of(8, 3);
    rank(1).send(0, 1, large);  // asks
    run();
    rank(1).send(0, 2, eager);  // the pipe holds its beginning
    rank(0).device.progress();
    Unexpected* asked = rank(0).device.claim({1, 1, 0}, false);
    Unexpected* begun = rank(0).device.claim({1, 2, 0}, false);
    ASSERT_NE(asked, nullptr);
    ASSERT_NE(begun, nullptr);
    ASSERT_LT(begun->arrived, kEagerMost);
    kill(1);
    run();
    EXPECT_TRUE(rank(0).device.is_gone(1));
    auto out = bytes_of(8, 4);
    rank(2).send(0, 1, out);  // takes a place of its own
    run();
    for (Unexpected* message : {asked, begun}) {
        ReceiveOrder order;
        order.parts = parts_of(in, 1);
        rank(0).device.receive_claimed(*message, order);
        ASSERT_EQ(rank(0).told.size(), 1U);
        EXPECT_EQ(rank(0).take()[0].status, Status::gone);
    }
    rank(0).receive(2, 1, in);
    ASSERT_EQ(rank(0).told.size(), 1U);
    EXPECT_TRUE(in == out);
}

TEST_F(ThreeDevices, receives_from_anybody_end_when_nobody_is_left) {
    auto in = bytes_of(8, 1), late = bytes_of(8, 2);
    rank(0).receive(kAnySource, 1, in);
    kill(1);
    run();
    EXPECT_THAT(rank(0).told, IsEmpty());
    kill(2);
    run();
    rank(0).receive(kAnySource, 1, late);
    ASSERT_EQ(rank(0).told.size(), 2U);
    for (const auto& told : rank(0).told) EXPECT_EQ(told.status, Status::gone);
}

TEST_F(ThreeDevices, a_rank_that_sends_what_no_device_sends_is_given_up_and_others_go_on) {
    std::mt19937 random(5);
    for (unsigned i = 0; i < 2000; ++i) {
        std::vector<std::byte> nonsense(random() % 60);
        for (auto& byte : nonsense) byte = static_cast<std::byte>(random() % 256);
        if (!nonsense.empty()) nonsense[0] = static_cast<std::byte>(random() % 16);
        if (nonsense.size() > 8) std::fill(nonsense.begin() + 1, nonsense.begin() + 8, std::byte{});
        pipes.put(1, 0, nonsense);
    }
    pipes.put(1, 0, std::vector<std::byte>(5000));
    auto out = bytes_of(100'000, 1), in = bytes_of(100'000, 2);
    rank(2).send(0, 1, out);
    rank(0).receive(2, 1, in);
    is_dead[1] = true;
    run();
    EXPECT_EQ(rank(0).device.counters().broken, 1U);
    EXPECT_TRUE(in == out);
    EXPECT_TRUE(pipes.empty());
}

std::vector<std::byte> written(const Packet& packet) {
    std::vector<std::byte> bytes(kMostPacketBytes);
    bytes.resize(write(packet, bytes.data()));
    return bytes;
}

TEST_F(DeviceTest, a_sender_that_announces_more_than_leaves_unasked_is_given_up) {
    Packet packet;
    packet.header.type = PacketType::long_message;
    packet.size = kEagerMost + 1;
    pipes.put(1, 0, written(packet));
    run();
    EXPECT_EQ(rank(0).device.counters().broken, 1U);
    EXPECT_EQ(rank(0).device.counters().unexpected, 0U);
}

TEST_F(ThreeDevices, a_sender_of_another_rank_s_bytes_is_given_up) {
    auto out = bytes_of(200'000, 1), in = bytes_of(200'000, 2);
    rank(0).receive(2, 1, in);
    rank(2).send(0, 1, out);
    while (rank(0).device.progress()) {
    }
    Packet packet;
    packet.header.type = PacketType::data;
    packet.receive = Pool<int>::kMost;  // the first delivery's number
    pipes.put(1, 0, written(packet));
    is_dead[1] = true;
    run();
    EXPECT_EQ(rank(0).device.counters().broken, 1U);
    EXPECT_TRUE(in == out);
}

TEST_F(DeviceTest, what_waits_for_room_leaves_together_and_in_order) {
    constexpr unsigned kMessages = 500;
    std::vector<std::vector<std::byte>> out, in(kMessages);
    for (unsigned i = 0; i < kMessages; ++i) {
        out.push_back(bytes_of(i % 97 == 0 ? 700'000 : i % 60, i));
        in[i].resize(out[i].size());
    }
    for (auto& bytes : out) rank(0).send(1, 1, bytes);
    for (auto& bytes : in) rank(1).receive(0, 1, bytes);
    run();
    for (unsigned i = 0; i < kMessages; ++i) ASSERT_TRUE(in[i] == out[i]) << i;
    EXPECT_EQ(rank(0).told.size(), kMessages);
    EXPECT_LT(pipes.of(0).counters().packets_sent, kMessages / 3);
}

TEST_F(DeviceTest, what_is_no_bundle_ends_the_conversation) {
    const auto packet = [](PacketType type, std::vector<std::byte> tail = {}) {
        std::vector<std::byte> bytes(kMostPacketBytes);
        Packet its;
        its.header.type = type;
        its.size = 1000;
        bytes.resize(write(its, bytes.data()));
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
    const auto sound = packet(PacketType::short_message, bytes_of(5, 1));
    const auto nested = packet(PacketType::bundle, bundled(sound, sound.size()));
    auto announcing = bundled(packet(PacketType::long_message), kHeaderBytes + 8);
    const auto behind = bundled(sound, sound.size());
    announcing.insert(announcing.end(), behind.begin(), behind.end());
    const std::vector<std::vector<std::byte>> wrong = {
        bytes_of(3, 1),                    // no length
        bundled(sound, sound.size() + 1),  // longer than what is there
        bundled(sound, kHeaderBytes - 1),  // no packet
        bundled(nested, nested.size()),    // a bundle in it
        announcing,                        // bulk would have to follow
    };
    for (const auto& bytes : wrong) {
        Pipes their_pipes(2, 1);
        Rank receiver(their_pipes.of(0));
        their_pipes.put(1, 0, packet(PacketType::bundle, behind));
        their_pipes.put(1, 0, packet(PacketType::bundle, bytes));
        while (receiver.device.progress()) {
        }
        EXPECT_EQ(receiver.device.counters().unexpected, &bytes == &wrong.back() ? 2U : 1U);
        EXPECT_EQ(receiver.device.counters().broken, 1U);
    }
}

}  // namespace
}  // namespace mpi_channel
