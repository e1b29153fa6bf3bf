// SPDX-License-Identifier: Apache-2.0
//
// Long messages that their receiver reads, from the sender's memory or through the fabric, and what
// happens when it may not, or cannot.
#include "tests/support/messages_of_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpi_channel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kLeast = 1000;
constexpr std::size_t kLong = kEagerMost + 1;

struct Getting : MessagesOfRanks {
    Getting() { ranks.use_memory(kLeast); }
};
struct FarGetting : MessagesOfRanks {
    FarGetting() { ranks.use_far_memory(); }
};

/// By either way.
class Reading : public MessagesOfRanks, public testing::WithParamInterface<bool> {
protected:
    Reading() {
        if (is_far())
            ranks.use_far_memory();
        else
            ranks.use_memory(kLeast);
    }
    void TearDown() override {
        EXPECT_EQ(ranks[0].far.offered, 0U);
        EXPECT_FALSE(ranks[0].device.has_backlog());
    }
    static bool is_far() { return GetParam(); }
    static std::size_t least() { return is_far() ? kLong : kLeast; }
    /// Messages that were read by their receiver.
    std::uint64_t read_of(unsigned sender) {
        return is_far() ? counters(sender).far_sent : counters(sender).gets_sent;
    }
    std::size_t bytes_read() {
        return is_far() ? ranks[1].far.bytes_read.load() : ranks[1].memory.bytes_read;
    }
    /// Rank 1 can read that many slices more.
    void limit_reads(unsigned slices) {
        ranks[1].far.left = slices;
        ranks[1].memory.left = slices * kGetSlice;
    }
};
INSTANTIATE_TEST_SUITE_P(By, Reading, testing::Bool(), [](const auto& is_far) {
    return std::string(is_far.param ? "fabric" : "memory");
});

TEST_P(Reading, messages_that_are_long_are_read_whether_their_receive_waits_or_not) {
    std::uint64_t reads = 0;
    for (const std::size_t size :
         {least() - 1, least(), kLong, kGetSlice, std::size_t{1} << 20, 3 * kGetSlice + 5}) {
        for (const bool is_expected : {true, false}) {
            expect_arrives(size, {.is_expected = is_expected});
            reads += size >= least() ? 1U : 0U;
        }
    }
    EXPECT_EQ(read_of(0), reads);
    EXPECT_EQ(counters(1).gets_received, reads);
    EXPECT_EQ(counters(0).gets_refused, 0U);
    expect_arrives(100'000, {.pieces = 2});
    EXPECT_EQ(read_of(0), reads) << "one in parts goes over the ring";
}

TEST_P(Reading, a_message_that_cannot_be_read_comes_over_the_ring_and_so_do_those_after_it) {
    for (const unsigned slices : {0U, 1U}) {  // of three
        const Way way{.from = 2 * slices};
        limit_reads(slices);
        expect_arrives(3 * kGetSlice, way);
        EXPECT_EQ(counters(way.from).gets_refused, 1U);
        limit_reads(100);
        expect_arrives(3 * kGetSlice, way);
        EXPECT_EQ(counters(way.from).gets_refused, 1U) << "it is not offered any more";
        EXPECT_EQ(read_of(way.from), 0U);
    }
    EXPECT_EQ(counters(1).gets_received, 0U);
    EXPECT_EQ(bytes_read(), kGetSlice) << "and begins again where the read broke off";
}

TEST_P(Reading, a_receiver_that_does_not_read_is_sent_the_bytes) {
    DeviceRanks two(2);
    if (is_far())
        two[0].device.use_far(two[0].far);
    else
        two[0].device.use(two[0].memory, kLeast, kNoGets);
    auto out = pattern(100'000, 1), in = pattern(100'000, 2);
    two[0].device.send({.to = 1, .parts = parts_of(out)});
    two[1].device.receive({.parts = parts_of(in)});
    two.run();
    EXPECT_TRUE(in == out);
    EXPECT_EQ(two[0].device.counters().gets_refused, 1U);
}

TEST_P(Reading, what_is_cut_or_discarded_is_not_read_and_the_sender_is_told) {
    auto out = pattern(2 * kLong, 1), half = pattern(kLong, 2);
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
    EXPECT_EQ(bytes_read(), half.size());
}

TEST_P(Reading, messages_among_three_ranks_keep_their_order_and_contents) {
    constexpr unsigned kMessages = 30;
    std::vector<std::vector<std::byte>> out, in;
    for (unsigned i = 0; i < 6 * kMessages; ++i) {
        out.push_back(pattern(i % 3 == 0 ? kLong + i : 100 + i, i));
        in.push_back(pattern(kLong + 6 * kMessages, 99));
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
    EXPECT_EQ(read_of(0), 2 * kMessages / 3);
}

// ---- From the sender's memory

TEST_F(Getting, larger_ones_than_is_worth_it_go_over_the_ring) {
    ranks.use_memory(kLeast, 100'000);
    expect_arrives(100'000);
    EXPECT_EQ(counters(0).gets_sent, 1U);
    expect_arrives(100'001);
    EXPECT_EQ(counters(0).gets_sent, 1U);
}

TEST_F(Getting, a_rank_that_is_known_to_be_far_is_offered_nothing) {
    ranks[0].memory.far[1] = true;
    expect_arrives(1'000'000);
    EXPECT_EQ(counters(0).gets_refused, 0U);
    EXPECT_EQ(counters(0).gets_sent, 0U);
}

TEST_F(Getting, a_message_whose_sender_dies_while_it_is_read_ends_as_gone) {
    auto out = pattern(4 * kGetSlice, 1), in = pattern(4 * kGetSlice, 2);
    receive(1, 0, 1, in);
    send(0, 1, 1, out);
    ranks[1].device.progress();
    ranks[1].device.progress();
    ASSERT_GT(ranks[1].memory.bytes_read, 0U);
    ranks.kill(0);
    ranks[1].memory.far[0] = true;
    ranks.run();
    EXPECT_THAT(take_statuses(1), ElementsAre(Status::gone));
}

TEST_F(Getting, a_rank_that_says_that_it_has_read_what_was_not_offered_to_it_is_given_up) {
    auto out = pattern(100'000, 1), in = pattern(100'000, 2);
    send(0, 1, 1, out);  // offered to rank 1
    ranks.run();
    for (std::uint32_t number = 0; number < 4; ++number) {
        Packet packet;
        packet.header.type = PacketType::done_get;
        packet.send = number * Pool<Unexpected>::kMax;
        ranks.pipes.put(2, 0, written(packet));
    }
    ranks.run();
    EXPECT_EQ(counters(0).broken, 1U);
    EXPECT_THAT(ranks[0].told, IsEmpty());
    receive(1, 0, 1, in);
    ranks.run();
    EXPECT_TRUE(in == out);
}

// ---- Through the fabric

TEST_F(FarGetting, a_host_s_memory_comes_first) {
    ranks.use_memory(kLeast);
    expect_arrives(kLong);
    EXPECT_EQ(counters(0).gets_sent, 1U);
    EXPECT_EQ(counters(0).far_sent, 0U);
}

TEST_F(FarGetting,
       a_rank_that_meets_nobody_is_sent_the_bytes_and_one_without_a_name_offers_nothing) {
    ranks[1].far.is_open = false;
    expect_arrives(kLong);
    EXPECT_EQ(counters(0).gets_refused, 1U);
    ranks[1].far.is_open = true;
    ranks[0].far.unread.clear();
    ranks[0].far.own_name.clear();
    expect_arrives(kLong);
    EXPECT_EQ(counters(0).gets_refused, 1U);
}

TEST_F(FarGetting, a_message_whose_sender_dies_while_it_is_read_ends_as_gone) {
    auto out = pattern(kLong, 1), in = pattern(kLong, 2);
    receive(1, 0, 1, in, 3);
    ranks[1].far.holds = true;
    send(0, 1, 1, out);
    while (ranks[1].far.reads.empty()) ranks[1].device.progress();
    ranks.kill(0);
    ranks.run();
    EXPECT_THAT(take_statuses(1), ElementsAre(Status::gone));
    EXPECT_TRUE(ranks[1].far.reads.empty()) << "nothing writes there any more";
}

TEST_F(FarGetting, a_send_whose_receiver_dies_ends_as_gone_and_offers_nothing_any_more) {
    auto out = pattern(kLong, 1);
    send(0, 1, 1, out);
    ranks.run();
    EXPECT_EQ(ranks[0].far.offered, 1U);
    ranks.kill(1);
    ranks.run();
    EXPECT_THAT(take_statuses(0), ElementsAre(Status::gone));
    EXPECT_EQ(ranks[0].far.offered, 0U);
}

}  // namespace
}  // namespace mpi_channel
