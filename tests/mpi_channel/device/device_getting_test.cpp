// SPDX-License-Identifier: Apache-2.0
//
// Long messages that their receiver reads from the sender's memory, and what happens when it may
// not.
#include "tests/support/messages_of_ranks.hpp"

#include <gtest/gtest.h>

namespace mpi_channel {
namespace {

constexpr std::size_t kLeast = 1000;

class Getting : public MessagesOfRanks {
protected:
    Getting() { ranks.use_memory(kLeast); }
};

TEST_F(Getting, messages_from_the_threshold_on_are_read_whether_their_receive_waits_or_not) {
    std::uint64_t gets = 0;
    for (const std::size_t size : {kLeast - 1, kLeast, kEagerMost, kGetSlice, 3 * kGetSlice + 5}) {
        for (const bool is_expected : {true, false}) {
            expect_arrives(size, 1, is_expected);
            gets += size >= kLeast ? 1 : 0;
        }
    }
    EXPECT_EQ(counters(0).gets_sent, gets);
    EXPECT_EQ(counters(1).gets_received, gets);
    EXPECT_EQ(counters(0).gets_refused, 0U);
}

TEST_F(Getting, larger_ones_than_is_worth_it_go_over_the_ring) {
    ranks.use_memory(kLeast, 100'000);
    expect_arrives(100'000);
    EXPECT_EQ(counters(0).gets_sent, 1U);
    expect_arrives(100'001);
    EXPECT_EQ(counters(0).gets_sent, 1U);
}

TEST_F(Getting, a_message_in_parts_goes_over_the_ring) {
    expect_arrives(100'000, 2);
    EXPECT_EQ(counters(0).gets_sent, 0U);
}

TEST_F(Getting, a_message_that_cannot_be_read_comes_over_the_ring_and_so_do_those_after_it) {
    ranks[1].memory.left = 0;
    expect_arrives(3 * kGetSlice);
    EXPECT_EQ(counters(0).gets_refused, 1U);
    ranks[1].memory.left = FakeMemory::kAll;
    expect_arrives(3 * kGetSlice);
    EXPECT_EQ(counters(0).gets_refused, 1U) << "it is not offered any more";
    EXPECT_EQ(counters(0).gets_sent, 0U);
    EXPECT_EQ(counters(1).gets_received, 0U);
}

TEST_F(Getting, a_read_that_breaks_off_begins_again_over_the_ring) {
    ranks[1].memory.left = kGetSlice + 100;
    expect_arrives(3 * kGetSlice + 17);
    EXPECT_GT(ranks[1].memory.bytes_read, 0U);
    EXPECT_EQ(counters(0).gets_refused, 1U);
}

TEST_F(Getting, a_rank_that_is_known_to_be_far_is_offered_nothing) {
    ranks[0].memory.far[1] = true;
    expect_arrives(1'000'000);
    EXPECT_EQ(counters(0).gets_refused, 0U);
    EXPECT_EQ(counters(0).gets_sent, 0U);
}

TEST_F(Getting, a_receiver_that_does_not_read_is_sent_the_bytes) {
    DeviceRanks two(2);
    two[0].device.use(two[0].memory, kLeast, kNoGets);
    auto out = bytes_of(100'000, 1), in = bytes_of(100'000, 2);
    SendOrder order;
    order.to = 1;
    order.parts = parts_of(out);
    two[0].device.send(order);
    ReceiveOrder receive;
    receive.parts = parts_of(in);
    two[1].device.receive(receive);
    two.run();
    EXPECT_TRUE(in == out);
    EXPECT_EQ(two[0].device.counters().gets_refused, 1U);
}

TEST_F(Getting, what_is_cut_or_discarded_is_not_read_and_the_sender_is_told) {
    auto out = bytes_of(100'000, 1), half = bytes_of(50'000, 2);
    receive(1, 0, 7, half);
    send(0, 1, 7, out);
    send(0, 1, 8, out);
    ranks.run();
    ASSERT_EQ(ranks[1].told.size(), 1U);
    EXPECT_EQ(ranks[1].told[0].status, Status::cut);
    EXPECT_EQ(ranks[1].told[0].bytes, half.size());
    EXPECT_TRUE(std::equal(half.begin(), half.end(), out.begin()));
    EXPECT_EQ(ranks[0].told.size(), 1U);
    ranks[1].device.discard(*ranks[1].device.claim({0, 8, 0}, false));
    ranks.run();
    EXPECT_EQ(ranks[0].told.size(), 2U);
    EXPECT_EQ(ranks[1].memory.bytes_read, half.size());
}

TEST_F(Getting, messages_of_one_sender_are_received_in_their_order) {
    std::vector<std::vector<std::byte>> out, in;
    for (unsigned i = 0; i < 40; ++i) out.push_back(bytes_of(i % 3 == 0 ? 100'000 : 100, i));
    for (unsigned i = 0; i < 40; ++i) in.push_back(bytes_of(100'000, 99));
    for (auto& bytes : out) send(0, 1, 1, bytes);
    for (auto& bytes : in) receive(1, 0, 1, bytes);
    ranks.run();
    for (unsigned i = 0; i < 40; ++i)
        EXPECT_TRUE(std::equal(out[i].begin(), out[i].end(), in[i].begin())) << i;
}

TEST_F(Getting, a_message_whose_sender_dies_while_it_is_read_ends_as_gone) {
    auto out = bytes_of(4 * kGetSlice, 1), in = bytes_of(4 * kGetSlice, 2);
    receive(1, 0, 1, in);
    send(0, 1, 1, out);
    ranks[1].device.progress();
    ranks[1].device.progress();
    ASSERT_GT(ranks[1].memory.bytes_read, 0U);
    ranks.kill(0);
    ranks[1].memory.far[0] = true;
    ranks.run();
    ASSERT_EQ(ranks[1].told.size(), 1U);
    EXPECT_EQ(ranks[1].told[0].status, Status::gone);
}

TEST_F(Getting, a_rank_that_says_that_it_has_read_what_was_not_offered_to_it_is_given_up) {
    auto out = bytes_of(100'000, 1), in = bytes_of(100'000, 2);
    send(0, 1, 1, out);  // offered to rank 1
    ranks.run();
    for (std::uint32_t number = 0; number < 4; ++number) {
        Packet packet;
        packet.header.type = PacketType::done_get;
        packet.send = number * Pool<Unexpected>::kMost;
        std::vector<std::byte> bytes(kMostPacketBytes);
        bytes.resize(write(packet, bytes.data()));
        ranks.pipes.put(2, 0, bytes);
    }
    ranks.run();
    EXPECT_EQ(counters(0).broken, 1U);
    EXPECT_TRUE(ranks[0].told.empty());
    receive(1, 0, 1, in);
    ranks.run();
    EXPECT_TRUE(in == out);
}

}  // namespace
}  // namespace mpi_channel
