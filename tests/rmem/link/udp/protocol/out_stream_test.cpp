// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/out_stream.hpp"
#include "tests/rmem/link/udp/protocol/batch_fixture.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace rmem::udp {
namespace {

constexpr std::size_t kPayload = 100;

TEST(OutStream, is_never_further_ahead_than_the_window_of_its_slowest_receiver) {
    OutStream out(8, kMaxBytes);
    out.set_window(4 * bytes_charged(kPayload));
    out.admit(1);
    out.admit(2);
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(out.has_room(1, kPayload));
        out.add(body_of(1), 0);
    }
    EXPECT_FALSE(out.has_room(1, kPayload));
    EXPECT_FALSE(out.on_ack(1, 4, 10)) << "the other one has nothing yet";
    EXPECT_FALSE(out.has_room(1, kPayload));
    EXPECT_TRUE(out.on_ack(2, 3, 10));
    EXPECT_TRUE(out.has_room(3, kPayload));
    EXPECT_FALSE(out.has_room(4, kPayload));
    EXPECT_TRUE(out.drop(2)) << "who is gone holds nobody up";
    EXPECT_TRUE(out.has_room(4, kPayload));
}

TEST(OutStream, has_room_for_few_long_batches_or_many_short_ones) {
    constexpr std::size_t kLong = 20'000;
    OutStream out(1024, kLong);
    out.admit(1);
    out.set_window(10 * bytes_charged(kLong));
    const std::vector<std::byte> body(kLong - kEnvelopeBytes);
    for (int i = 0; i < 9; ++i) out.add(body, 0);
    EXPECT_TRUE(out.has_room(1, kLong));
    EXPECT_FALSE(out.has_room(2, kLong));
    EXPECT_TRUE(out.has_room(4, kPayload));
    EXPECT_TRUE(out.on_ack(1, 9, 10));
    EXPECT_TRUE(out.has_room(10, kLong));
    for (int i = 0; i < 11; ++i) out.add(body_of(1), 20);
    EXPECT_TRUE(out.has_room(7, kLong)) << "11 short ones take what 3 long ones do";
    EXPECT_FALSE(out.has_room(8, kLong));
    // However much the receivers' hosts have, more under way leaves the caches.
    out.set_window(std::size_t{1} << 30);
    EXPECT_TRUE(out.has_room(kMaxWindowBytes / kLong - 1, kLong));
    EXPECT_FALSE(out.has_room(kMaxWindowBytes / kLong + 1, kLong));
}

TEST(OutStream, keeps_nothing_for_nobody) {
    OutStream out(4, kMaxBytes);
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(out.has_room(1, kPayload));
        out.add(body_of(7), 0);
    }
    EXPECT_TRUE(out.is_idle());
    EXPECT_EQ(out.probe_due_ns(), kNever);
    EXPECT_EQ(out.admit(3), 101U);
}

TEST(OutStream, takes_no_word_for_what_was_not_sent) {
    OutStream out(8, kMaxBytes);
    out.admit(1);
    out.add(body_of(1), 0);
    EXPECT_FALSE(out.on_ack(1, 2, 0));
    EXPECT_FALSE(out.on_ack(2, 1, 0)) << "of one who is no receiver";
    out.on_nak(0, UINT64_MAX, 0);
    EXPECT_EQ(out.next_retransmission(0), std::optional<std::uint64_t>(1));
    EXPECT_EQ(out.next_retransmission(0), std::nullopt);
    out.on_nak(2, 5, 100'000'000);
    EXPECT_EQ(out.next_retransmission(100'000'000), std::nullopt);
    EXPECT_TRUE(out.on_ack(1, 1, 0));
    EXPECT_TRUE(out.body(1).empty()) << "all have it";
}

TEST(OutStream, takes_no_older_word_back_and_retransmits_nothing_that_all_have) {
    OutStream out(4, kMaxBytes);
    out.set_times({100'000, 0});
    out.admit(1);
    for (int i = 0; i < 4; ++i) out.add(body_of(1), 0);
    out.on_nak(2, 2, 10);
    EXPECT_TRUE(out.on_ack(1, 2, 20));
    EXPECT_FALSE(out.on_ack(1, 1, 30)) << "it was on its way longer";
    EXPECT_EQ(out.acked_by(1), 2U);
    EXPECT_TRUE(out.has_room(2, kPayload));
    EXPECT_EQ(out.next_retransmission(40), std::optional<std::uint64_t>(3)) << "2 has arrived";
    EXPECT_EQ(out.next_retransmission(40), std::nullopt);
}

TEST(OutStream, answers_naks_of_about_the_same_time_once) {
    OutStream out(8, kMaxBytes);
    out.set_times({100'000, 0});
    out.admit(1);
    out.admit(2);
    for (int i = 0; i < 3; ++i) out.add(body_of(1), 0);
    out.on_nak(2, 1, 1000);
    out.on_nak(1, 2, 1001);
    EXPECT_EQ(out.next_retransmission(1002), std::optional<std::uint64_t>(1));
    EXPECT_EQ(out.next_retransmission(1002), std::optional<std::uint64_t>(2));
    out.on_nak(1, 2, 1003);
    EXPECT_EQ(out.next_retransmission(1003), std::nullopt);
    out.on_nak(1, 2, 60'000);
    EXPECT_EQ(out.next_retransmission(60'000), std::optional<std::uint64_t>(1))
        << "that one was lost, too";
}

TEST(OutStream, probes_less_and_less_often_until_somebody_answers) {
    OutStream out(8, kMaxBytes);
    out.set_times({100'000, 0});
    out.admit(1);
    out.add(body_of(1), 0);
    EXPECT_EQ(out.probe(99'999), std::nullopt);
    std::int64_t last = 0, interval = 0;
    for (int i = 0; i < 12; ++i) {
        const std::int64_t due = out.probe_due_ns();
        EXPECT_GE(due - last, interval);
        EXPECT_LE(due - last, kMaxRetryNs);
        interval = due - last;
        last = due;
        EXPECT_EQ(out.probe(due), std::optional<std::uint64_t>(1));
    }
    EXPECT_EQ(interval, kMaxRetryNs);
    out.add(body_of(2), last);
    EXPECT_EQ(out.probe_due_ns(), last + 100'000);
    EXPECT_EQ(out.probe(last + 100'000), std::optional<std::uint64_t>(2));
    EXPECT_TRUE(out.on_ack(1, 1, last + 150'000));
    EXPECT_EQ(out.probe_due_ns(), last + 250'000) << "somebody is there";
}

TEST(OutStream, probes_less_often_where_many_would_answer) {
    const auto until_the_first = [](unsigned receivers) {
        OutStream out(8, kMaxBytes);
        out.set_times({100'000, 0});
        for (unsigned n = 1; n <= receivers; ++n) out.admit(n);
        out.add(body_of(1), 0);
        return out.probe_due_ns();
    };
    EXPECT_EQ(until_the_first(kProbedAtOnce), until_the_first(1));
    EXPECT_EQ(until_the_first(8 * kProbedAtOnce), 8 * until_the_first(1));
}

TEST(OutStreamDeathTest, checks_that_there_is_room_for_what_is_added) {
    OutStream out(2, kMaxBytes);
    out.admit(1);
    out.add(body_of(1), 0);
    out.add(body_of(2), 0);
    EXPECT_BROKEN(out.add(body_of(3), 0));
}

}  // namespace
}  // namespace rmem::udp
