// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/in_stream.hpp"
#include "tests/rmem/link/udp/protocol/batch_fixture.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rmem::udp {
namespace {

TEST(InStream, refuses_what_no_member_sends) {
    InStream in(5, 8, kMaxBytes);
    const std::vector<std::byte> large(kMaxBytes + 1);
    EXPECT_EQ(in.offer(4, body_of(4), 0), InStream::Offer::known);
    EXPECT_EQ(in.offer(13, body_of(13), 0), InStream::Offer::too_far);
    EXPECT_EQ(in.offer(5, large, 0), InStream::Offer::too_large);
    in.note_newest(13, 0);
    in.note_newest(UINT64_MAX, 0);
    EXPECT_EQ(in.nak_due_ns(), kNever);
    EXPECT_EQ(in.offer(5, body_of(5), 0), InStream::Offer::taken);
    EXPECT_EQ(in.offer(5, body_of(5), 0), InStream::Offer::known);
    EXPECT_TRUE(in.take());
    EXPECT_FALSE(in.take());
    EXPECT_EQ(in.applied(), 5U);
}

TEST(InStream, keeps_the_last_ones_for_those_who_lack_them) {
    InStream in(1, 8, kMaxBytes);
    for (std::uint64_t n = 1; n <= 100; ++n) {
        ASSERT_EQ(in.offer(n, body_of(n), 0), InStream::Offer::taken);
        ASSERT_TRUE(in.take());
        for (std::uint64_t old = n >= 8 ? n - 7 : 1; old <= n; ++old) {
            const auto body = in.body(old);
            ASSERT_EQ(std::vector<std::byte>(body.begin(), body.end()), body_of(old));
        }
    }
}

TEST(InStream, asks_for_each_range_that_is_missing_and_at_once_for_what_shows_up_later) {
    InStream in(1, 16, kMaxBytes);
    in.set_times({100'000, 0}, 0);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> naks;
    const auto send_naks = [&](std::int64_t now) {
        naks.clear();
        in.send_naks(now, [&](std::uint64_t first, std::uint64_t count) {
            naks.push_back({first, count});
        });
        return naks;
    };
    using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    in.offer(3, body_of(3), 0);
    in.offer(6, body_of(6), 0);
    EXPECT_EQ(in.nak_due_ns(), 0);
    EXPECT_EQ(send_naks(0), (Ranges{{1, 2}, {4, 2}}));
    EXPECT_EQ(send_naks(1), Ranges{});
    in.note_newest(8, 50);
    EXPECT_EQ(send_naks(50), (Ranges{{7, 2}}));
    in.offer(1, body_of(1), 60);
    in.offer(2, body_of(2), 60);
    while (in.take()) {
    }
    EXPECT_EQ(in.applied(), 3U);
    EXPECT_EQ(in.nak_due_ns(), 200'050) << "two round trips after the last NAK";
    EXPECT_EQ(send_naks(200'050), (Ranges{{4, 2}, {7, 2}}));
    for (const std::uint64_t n : {4U, 5U, 7U, 8U}) in.offer(n, body_of(n), 200'060);
    while (in.take()) {
    }
    EXPECT_EQ(in.nak_due_ns(), kNever);
}

TEST(InStream, lets_those_nearer_to_the_origin_send_a_nak_first) {
    InStream in(1, 16, kMaxBytes);
    in.set_times({100'000, 0}, 2);
    in.offer(3, body_of(3), 0);
    EXPECT_EQ(in.nak_due_ns(), 50'000);
    in.on_other_nak(1, 2, 20'000);
    EXPECT_EQ(in.nak_due_ns(), 220'000) << "only when that brings nothing";
    in.offer(1, body_of(1), 30'000);
    in.offer(2, body_of(2), 30'000);
    while (in.take()) {
    }
    EXPECT_EQ(in.nak_due_ns(), kNever);
}

TEST(InStream, sends_its_nak_when_another_s_ends_before_what_is_missing) {
    InStream in(1, 16, kMaxBytes);
    in.set_times({100'000, 0}, 2);
    in.offer(1, body_of(1), 0);
    in.offer(3, body_of(3), 0);
    in.on_other_nak(1, 1, 20'000);
    EXPECT_EQ(in.nak_due_ns(), 50'000);
}

TEST(InStream, begins_with_short_intervals_again_when_an_answer_has_come) {
    InStream in(1, 16, kMaxBytes);
    in.set_times({100'000, 0}, 0);
    const auto last_of_three_intervals = [&in](std::int64_t now) {
        std::int64_t interval = 0;
        for (int i = 0; i < 3; ++i) {
            in.send_naks(now, [](std::uint64_t, std::uint64_t) {});
            interval = in.nak_due_ns() - now;
            now = in.nak_due_ns();
        }
        return interval;
    };
    in.offer(2, body_of(2), 0);
    EXPECT_EQ(last_of_three_intervals(0), 800'000) << "of 200, 400 and 800 µs";
    in.offer(1, body_of(1), 10'000'000);
    while (in.take()) {
    }
    in.offer(4, body_of(4), 10'000'000);
    EXPECT_EQ(last_of_three_intervals(10'000'000), 800'000);
}

}  // namespace
}  // namespace rmem::udp
