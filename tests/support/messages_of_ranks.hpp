// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages between the devices of some ranks in one process (tests/support/device_ranks.hpp), and
/// one whose way is checked from end to end.

#include "tests/support/device_ranks.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace mpi_channel {

class MessagesOfRanks : public testing::Test {
protected:
    void send(unsigned from, unsigned to, std::uint64_t tag, std::vector<std::byte>& bytes,
              unsigned pieces = 1) {
        SendOrder order;
        order.to = to;
        order.tag = tag;
        order.parts = parts_of(bytes, pieces);
        order.context = &bytes;
        ranks[from].device.send(order);
    }
    void receive(unsigned at, Source from, std::uint64_t tag, std::vector<std::byte>& bytes,
                 unsigned pieces = 1) {
        ReceiveOrder order;
        order.from = from;
        order.tag = tag;
        order.parts = parts_of(bytes, pieces);
        order.context = &bytes;
        ranks[at].device.receive(order);
    }
    /// One message of 0 to 1, both of whose completions are checked.
    void expect_arrives(std::size_t size, unsigned pieces = 1, bool is_expected = true) {
        auto out = bytes_of(size, 3), in = bytes_of(size, 4);
        if (is_expected) receive(1, 0, 7, in, 3);
        send(0, 1, 7, out, pieces);
        ranks.run();
        if (!is_expected) receive(1, 0, 7, in, 3);
        ranks.run();
        const auto sent = std::exchange(ranks[0].told, {});
        const auto received = std::exchange(ranks[1].told, {});
        ASSERT_EQ(sent.size(), 1U) << size;
        EXPECT_EQ(sent[0].status, Status::ok);
        ASSERT_EQ(received.size(), 1U) << size;
        EXPECT_EQ(received[0].status, Status::ok);
        EXPECT_EQ(received[0].bytes, size);
        EXPECT_TRUE(in == out) << size;
    }
    DeviceCounters counters(unsigned rank) { return ranks[rank].device.counters(); }

    DeviceRanks ranks{3};
};

}  // namespace mpi_channel
