// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages between the devices of some ranks in one process (tests/support/device_ranks.hpp), and
/// one whose way is checked from end to end. The context of each is its bytes.

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
        ranks[from].device.send(
            {.to = to, .tag = tag, .parts = parts_of(bytes, pieces), .context = &bytes});
    }
    void receive(unsigned at, Source from, std::uint64_t tag, std::vector<std::byte>& bytes,
                 unsigned pieces = 1) {
        ranks[at].device.receive(
            {.from = from, .tag = tag, .parts = parts_of(bytes, pieces), .context = &bytes});
    }
    /// What has been told there since it was asked last.
    std::vector<Completion> take(unsigned rank) { return std::exchange(ranks[rank].told, {}); }
    std::vector<Status> take_statuses(unsigned rank) {
        std::vector<Status> statuses;
        for (const Completion& told : take(rank)) statuses.push_back(told.status);
        return statuses;
    }

    struct Way {
        unsigned pieces = 1;
        bool is_expected = true;  ///< its receive waits for it
        unsigned from = 0;
        unsigned pieces_there = 3;
    };
    /// One message to rank 1, both of whose completions are checked.
    void expect_arrives(std::size_t size, const Way& way) {
        SCOPED_TRACE(testing::Message() << size << " bytes of " << way.from << " in " << way.pieces
                                        << (way.is_expected ? ", expected" : ""));
        auto out = pattern(size, 3), in = pattern(size, 4);
        if (way.is_expected) receive(1, way.from, 7, in, way.pieces_there);
        send(way.from, 1, 7, out, way.pieces);
        ranks.run();
        if (!way.is_expected) receive(1, way.from, 7, in, way.pieces_there);
        ranks.run();
        const auto sent = take(way.from), received = take(1);
        ASSERT_EQ(sent.size(), 1U);
        EXPECT_EQ(sent[0].context, &out);
        EXPECT_EQ(sent[0].status, Status::ok);
        ASSERT_EQ(received.size(), 1U);
        EXPECT_EQ(received[0].context, &in);
        EXPECT_EQ(received[0].status, Status::ok);
        EXPECT_EQ(received[0].bytes, size);
        EXPECT_EQ(received[0].envelope.source, way.from);
        EXPECT_EQ(received[0].envelope.tag, 7U);
        EXPECT_TRUE(in == out);
    }
    void expect_arrives(std::size_t size) { expect_arrives(size, Way{}); }
    DeviceCounters counters(unsigned rank) { return ranks[rank].device.counters(); }

    DeviceRanks ranks{3};
};

}  // namespace mpi_channel
