// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/outgoing.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace rmem::udp {
namespace {

std::vector<unsigned> drained(Outgoing& outgoing) {
    std::vector<unsigned> all;
    outgoing.drain([&](const OutgoingDatagram& datagram) {
        EXPECT_EQ(datagram.bytes.size(), 1U);
        all.push_back(std::to_integer<unsigned>(datagram.bytes.front()));
    });
    return all;
}

/// What a writer does: fills its buffer, and gets another one.
void fill(Outgoing& outgoing, std::span<std::byte>& buffer, unsigned value) {
    buffer.front() = static_cast<std::byte>(value);
    buffer = outgoing.take_over(buffer.first(1), OutgoingDatagram::To::all_nodes);
    ASSERT_EQ(buffer.size(), kMaxPayload);
}

TEST(Outgoing, gives_datagrams_in_the_order_in_which_they_were_filled) {
    Outgoing outgoing;
    std::span<std::byte> one = outgoing.lend(), two = outgoing.lend();
    EXPECT_TRUE(outgoing.is_empty());
    fill(outgoing, one, 1);
    fill(outgoing, two, 2);
    fill(outgoing, one, 3);
    EXPECT_FALSE(outgoing.is_empty());
    EXPECT_EQ(drained(outgoing), (std::vector<unsigned>{1, 2, 3}));
    EXPECT_TRUE(outgoing.is_empty());
    EXPECT_TRUE(drained(outgoing).empty());
}

TEST(Outgoing, uses_the_same_buffers_again_and_again) {
    Outgoing outgoing;
    std::span<std::byte> buffer = outgoing.lend();
    std::set<const std::byte*> seen;
    for (unsigned i = 0; i < 100; ++i) {
        seen.insert(buffer.data());
        fill(outgoing, buffer, i);
        fill(outgoing, buffer, i);
        EXPECT_EQ(drained(outgoing).size(), 2U);
    }
    EXPECT_LE(seen.size(), 3U);
    const std::byte* const given = buffer.data();
    outgoing.give_back(buffer);
    EXPECT_EQ(outgoing.lend().data(), given);
}

TEST(Outgoing, sends_no_more_than_it_may_hold_and_counts_the_rest) {
    Outgoing outgoing;
    std::span<std::byte> buffer = outgoing.lend();
    for (unsigned i = 0; i < kMaxOutgoing + 3; ++i) fill(outgoing, buffer, i % 256);
    EXPECT_EQ(outgoing.no_room(), 3U);
    EXPECT_EQ(drained(outgoing).size(), kMaxOutgoing);
    fill(outgoing, buffer, 7);
    EXPECT_EQ(drained(outgoing), std::vector<unsigned>{7});
}

TEST(Outgoing, notices_a_buffer_that_is_given_back_twice) {
    Outgoing outgoing;
    const std::span<std::byte> buffer = outgoing.lend();
    outgoing.give_back(buffer);
    EXPECT_BROKEN(outgoing.give_back(buffer));
}

}  // namespace
}  // namespace rmem::udp
