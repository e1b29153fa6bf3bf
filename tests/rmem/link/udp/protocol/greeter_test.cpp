// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/greeter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace rmem::udp {
namespace {

/// A greeter, and how many greetings a datagram of it has.
struct Speaker {
    explicit Speaker(unsigned nodes)
        : greeter(nodes, 1, 7), buffer(kDefaultPayload), writer(buffer) {}

    std::size_t speak(std::int64_t now) {
        writer.begin({});
        const std::size_t empty = writer.covered().size();
        greeter.add_to(
            writer, 0, [](unsigned) { return std::uint64_t{0}; }, now);
        const std::size_t bytes = writer.covered().size() - empty;
        return bytes == 0 ? 0 : (bytes - kSectionHeadBytes) / Greeting::kBytes;
    }
    /// Whether the node is asked when it is heard.
    bool asks(unsigned node, std::int64_t now) {
        greeter.owe(node, 0, now);
        return speak(now) == 1;
    }

    Greeter greeter;
    std::vector<std::byte> buffer;
    DatagramWriter writer;
};

TEST(Greeter, asks_a_node_that_does_not_answer_less_and_less_often) {
    Speaker speaker(2);
    std::int64_t now = 1;
    for (std::int64_t pause = kGreetAgainNs; pause < 4 * kMaxGreetAgainNs; pause *= 2) {
        EXPECT_TRUE(speaker.asks(1, now));
        const std::int64_t next = std::min(pause, kMaxGreetAgainNs);
        EXPECT_FALSE(speaker.asks(1, now + next - 1));
        now += next;
    }
    EXPECT_TRUE(speaker.asks(1, now));
    speaker.greeter.renew(1);
    EXPECT_TRUE(speaker.asks(1, now)) << "another incarnation";
    EXPECT_TRUE(speaker.asks(1, now + kGreetAgainNs));
}

TEST(Greeter, answers_each_question) {
    Speaker speaker(2);
    for (std::uint64_t nonce = 1; nonce <= 5; ++nonce) {
        speaker.greeter.owe(1, nonce, 1);
        EXPECT_EQ(speaker.speak(1), 1U);
    }
}

TEST(Greeter, of_a_ring_of_many_nodes_lets_greetings_leave_together) {
    const auto gap_of = [](unsigned nodes) {
        Speaker speaker(nodes);
        speaker.greeter.owe(1, 5, 1);
        EXPECT_EQ(speaker.greeter.due_ns(), 0) << "the first leaves at once";
        EXPECT_EQ(speaker.speak(1), 1U);
        speaker.greeter.owe(1, 6, 1);
        return speaker.greeter.due_ns() - 1;
    };
    EXPECT_EQ(gap_of(2), kGreetNs);
    EXPECT_EQ(gap_of(8), kGreetNs);
    EXPECT_EQ(gap_of(64), 8 * kGreetNs);
}

}  // namespace
}  // namespace rmem::udp
