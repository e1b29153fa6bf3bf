// SPDX-License-Identifier: Apache-2.0
//
// Long messages that their receiver reads through the fabric, and what happens when it cannot.
#include "tests/support/messages_of_ranks.hpp"

#include <gtest/gtest.h>

namespace mpi_channel {
namespace {

constexpr std::size_t kLong = kEagerMost + 1;

class FarGetting : public MessagesOfRanks {
protected:
    FarGetting() { ranks.use_far_memory(); }

    void expect_arrives(std::size_t size, unsigned pieces = 1, bool is_expected = true) {
        MessagesOfRanks::expect_arrives(size, pieces, is_expected);
        EXPECT_EQ(ranks[0].far.offered, 0U) << size;
        EXPECT_FALSE(ranks[0].device.has_backlog());
    }
};

TEST_F(FarGetting, messages_that_are_long_are_read_whether_their_receive_waits_or_not) {
    std::uint64_t reads = 0;
    for (const std::size_t size : {kEagerMost, kLong, std::size_t{1} << 20, 3 * kGetSlice + 5}) {
        for (const bool is_expected : {true, false}) {
            expect_arrives(size, 1, is_expected);
            reads += size > kEagerMost ? 1 : 0;
        }
    }
    EXPECT_EQ(counters(0).far_sent, reads);
    EXPECT_EQ(counters(0).gets_refused, 0U);
    expect_arrives(kLong, 2);
    EXPECT_EQ(counters(0).far_sent, reads) << "one in parts goes over the ring";
}

TEST_F(FarGetting, a_host_s_memory_comes_first) {
    ranks.use_memory(1000);
    expect_arrives(kLong);
    EXPECT_EQ(counters(0).gets_sent, 1U);
    EXPECT_EQ(counters(0).far_sent, 0U);
}

TEST_F(FarGetting, a_message_that_cannot_be_read_comes_over_the_ring_and_so_do_those_after_it) {
    ranks[1].far.left = 1;  // of three reads
    expect_arrives(3 * kGetSlice);
    EXPECT_EQ(counters(0).gets_refused, 1U);
    ranks[1].far.left = rmem::test::FakeFarMemory::kAll;
    expect_arrives(3 * kGetSlice);
    EXPECT_EQ(counters(0).gets_refused, 1U) << "it is not offered any more";
    EXPECT_EQ(counters(0).far_sent, 0U);
}

TEST_F(FarGetting, a_receiver_that_does_not_read_is_sent_the_bytes) {
    ranks[1].far.is_open = false;
    expect_arrives(kLong);
    EXPECT_EQ(counters(0).gets_refused, 1U);
    ranks[1].far.is_open = true;
    ranks[0].far.unread.clear();
    ranks[0].far.own_name.clear();
    expect_arrives(kLong);
    EXPECT_EQ(counters(0).gets_refused, 1U) << "a rank without a name offers nothing";
    DeviceRanks two(2);
    two[0].device.use_far(two[0].far);
    auto out = bytes_of(kLong, 1), in = bytes_of(kLong, 2);
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

TEST_F(FarGetting, what_is_cut_or_discarded_is_not_read_and_the_sender_is_told) {
    auto out = bytes_of(2 * kLong, 1), half = bytes_of(kLong, 2);
    receive(1, 0, 7, half);
    send(0, 1, 7, out);
    send(0, 1, 8, out);
    ranks.run();
    ASSERT_EQ(ranks[1].told.size(), 1U);
    EXPECT_EQ(ranks[1].told[0].status, Status::cut);
    EXPECT_TRUE(std::equal(half.begin(), half.end(), out.begin()));
    EXPECT_EQ(ranks[0].told.size(), 1U);
    ranks[1].device.discard(*ranks[1].device.claim({0, 8, 0}, false));
    ranks.run();
    EXPECT_EQ(ranks[0].told.size(), 2U);
    EXPECT_EQ(ranks[1].far.bytes_read, half.size());
}

TEST_F(FarGetting, messages_among_three_ranks_keep_their_order_and_contents) {
    constexpr unsigned kMessages = 30;
    std::vector<std::vector<std::byte>> out, in;
    for (unsigned i = 0; i < 6 * kMessages; ++i) {
        out.push_back(bytes_of(i % 3 == 0 ? kLong + i : 100 + i, i));
        in.push_back(bytes_of(kLong + 6 * kMessages, 99));
    }
    unsigned next = 0;
    for (unsigned from = 0; from < 3; ++from) {
        for (unsigned to = 0; to < 3; ++to) {
            for (unsigned i = 0; from != to && i < kMessages; ++i, ++next) {
                send(from, to, from, out[next]);
                if (i % 2 != 0) ranks[from].device.progress();
                receive(to, from, from, in[next]);
            }
        }
    }
    ranks.run();
    for (unsigned i = 0; i < next; ++i)
        EXPECT_TRUE(std::equal(out[i].begin(), out[i].end(), in[i].begin())) << i;
    EXPECT_EQ(counters(0).far_sent, 2 * kMessages / 3);
}

TEST_F(FarGetting, a_message_whose_sender_dies_while_it_is_read_ends_as_gone) {
    auto out = bytes_of(kLong, 1), in = bytes_of(kLong, 2);
    receive(1, 0, 1, in, 3);
    ranks[1].far.holds = true;
    send(0, 1, 1, out);
    while (ranks[1].far.reads.empty()) ranks[1].device.progress();
    ranks.kill(0);
    ranks.run();
    ASSERT_EQ(ranks[1].told.size(), 1U);
    EXPECT_EQ(ranks[1].told[0].status, Status::gone);
    EXPECT_TRUE(ranks[1].far.reads.empty()) << "nothing writes there any more";
}

TEST_F(FarGetting, a_send_whose_receiver_dies_ends_as_gone_and_offers_nothing_any_more) {
    auto out = bytes_of(kLong, 1);
    send(0, 1, 1, out);
    ranks.run();
    EXPECT_EQ(ranks[0].far.offered, 1U);
    ranks.kill(1);
    ranks.run();
    ASSERT_EQ(ranks[0].told.size(), 1U);
    EXPECT_EQ(ranks[0].told[0].status, Status::gone);
    EXPECT_EQ(ranks[0].far.offered, 0U);
}

}  // namespace
}  // namespace mpi_channel
