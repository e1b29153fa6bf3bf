// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/round_trip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <limits>
#include <random>

namespace rmem {
namespace {

constexpr std::int64_t kUs = 1'000;
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

/// Another node whose clock starts elsewhere and runs at another rate.
struct Other {
    std::int64_t start = 0;
    std::int64_t ppm = 0;

    std::int64_t clock(std::int64_t now) const { return start + now + now / 1'000'000 * ppm; }

    /// The echo of what leaves here at `now`.
    RoundTrip::Echo echo(std::int64_t now, std::int64_t there, std::int64_t held,
                         std::int64_t back) const {
        const std::int64_t received = now + there;
        const std::int64_t sent = received + held;
        return {now, clock(sent) - clock(received), clock(sent), sent + back};
    }
};

TEST(RoundTripTest, knows_nothing_at_first) {
    const RoundTrip trip;
    EXPECT_TRUE(trip.empty());
    EXPECT_EQ(trip.smoothed_ns(), 0);
    EXPECT_EQ(trip.deviation_ns(), 0);
    EXPECT_FALSE(trip.offset(0));
    EXPECT_FALSE(trip.own_time(0, 0));
}

TEST(RoundTripTest, smooths_as_rfc_6298_says) {
    RoundTrip trip;
    std::int64_t now = kSecond;
    double smoothed = 0;
    double deviation = 0;
    std::mt19937_64 random(6298);
    for (int i = 0; i < 1000; ++i, now += kMs) {
        const auto round_trip = static_cast<std::int64_t>(10 * kUs + random() % 40'000);
        ASSERT_TRUE(trip.add(Other{}.echo(now, round_trip / 3, kUs, round_trip - round_trip / 3)));
        const auto exact = static_cast<double>(round_trip);
        deviation = i == 0 ? exact / 2 : 0.75 * deviation + 0.25 * std::abs(smoothed - exact);
        smoothed = i == 0 ? exact : 0.875 * smoothed + 0.125 * exact;
        ASSERT_NEAR(static_cast<double>(trip.smoothed_ns()), smoothed, 2) << i;
        ASSERT_NEAR(static_cast<double>(trip.deviation_ns()), deviation, 4) << i;
    }
}

TEST(RoundTripTest, equal_ways_there_and_back_give_the_exact_offset) {
    for (const std::int64_t start : {77 * kSecond, -kSecond}) {
        RoundTrip trip;
        ASSERT_TRUE(trip.add(Other{start}.echo(5 * kSecond, 4 * kUs, 0, 4 * kUs)));
        const auto offset = trip.offset(5 * kSecond + 8 * kUs);
        ASSERT_TRUE(offset);
        EXPECT_EQ(offset->value_ns, start);
        EXPECT_EQ(offset->error_ns, 4 * kUs);
    }
}

TEST(RoundTripTest, the_error_covers_a_way_that_takes_all_of_the_round_trip) {
    for (const auto& [there, back] :
         {std::pair{10 * kUs, std::int64_t{0}}, std::pair{std::int64_t{0}, 10 * kUs},
          std::pair{std::int64_t{0}, std::int64_t{9'999}}}) {
        RoundTrip trip;
        ASSERT_TRUE(trip.add(Other{kSecond}.echo(kSecond, there, 2 * kUs, back)));
        const auto offset = trip.offset(kSecond);
        EXPECT_LE(std::abs(offset->value_ns - kSecond), offset->error_ns) << there << ' ' << back;
        EXPECT_LE(offset->error_ns, 5 * kUs + 1);
    }
}

TEST(RoundTripTest, the_offset_is_within_the_stated_error_at_any_drift_and_any_ways) {
    for (const std::int64_t ppm : {-99, -50, 0, 1, 50, 99}) {
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            std::mt19937_64 random(seed);
            const auto up_to = [&](std::uint64_t most) {
                return static_cast<std::int64_t>(random() % most);
            };
            const Other other{static_cast<std::int64_t>(seed) * kSecond, ppm};
            RoundTrip trip;
            std::int64_t now = 0;
            for (int i = 0; i < 3000; ++i) {
                now += up_to(i % 100 == 0 ? 2'000'000'000 : 1'000'000);
                const std::int64_t there = kUs + up_to(30'000);
                const std::int64_t held = up_to(i % 10 == 0 ? 100'000'000 : 20'000);
                const std::int64_t back = kUs + up_to(3'000);
                const RoundTrip::Echo echo = other.echo(now, there, held, back);
                // Held for long by a fast clock, it may seem to have taken no time.
                if (!trip.add(echo)) continue;
                const std::int64_t later = echo.arrived_ns + up_to(1'000'000'000);
                const auto offset = trip.offset(later);
                const std::int64_t truth = other.clock(later) - later;
                // The test's own clock is stepwise: a nanosecond or so.
                ASSERT_LE(std::abs(offset->value_ns - truth), offset->error_ns + std::abs(ppm) + 1)
                    << "ppm " << ppm << " seed " << seed << " echo " << i;
                now = std::max(now, echo.arrived_ns);
            }
            EXPECT_EQ(trip.jumps(), 0U) << ppm;
        }
    }
}

TEST(RoundTripTest, the_error_ages_by_100_ppm) {
    RoundTrip trip;
    ASSERT_TRUE(trip.add(Other{}.echo(0, 2 * kUs, 0, 2 * kUs)));
    const std::int64_t arrived = 4 * kUs;
    EXPECT_EQ(trip.offset(arrived)->error_ns, 2 * kUs);
    EXPECT_EQ(trip.offset(arrived + 1)->error_ns, 2 * kUs + 1);  // rounded up
    EXPECT_EQ(trip.offset(arrived + 10 * kMs)->error_ns, 3 * kUs);
    EXPECT_EQ(trip.offset(arrived + kSecond)->error_ns, 102 * kUs);
    EXPECT_EQ(trip.offset(0)->error_ns, 2 * kUs);  // earlier is no worse
}

TEST(RoundTripTest, the_error_is_the_least_of_the_last_64_at_any_time) {
    struct Taken {
        std::int64_t error;
        std::int64_t at;
    };
    std::mt19937_64 random(64);
    std::deque<Taken> last;
    RoundTrip trip;
    std::int64_t now = 0;
    for (int i = 0; i < 5000; ++i) {
        now += static_cast<std::int64_t>(random() % 10) * kMs;
        const auto way = static_cast<std::int64_t>(random() % 50) * kUs;
        const auto echo = Other{}.echo(now, way, 0, way);
        ASSERT_TRUE(trip.add(echo));
        last.push_back({way, echo.arrived_ns});
        if (last.size() > RoundTrip::kSamples) last.pop_front();
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        const std::int64_t later = now + 20 * kMs;
        for (const Taken& taken : last) {
            least = std::min(least, taken.error + (later - taken.at + 9'999) / 10'000);
        }
        ASSERT_NEAR(static_cast<double>(trip.offset(later)->error_ns), static_cast<double>(least),
                    1);
    }
}

TEST(RoundTripTest, a_clock_that_was_set_is_believed_at_once_and_counted) {
    RoundTrip trip;
    for (std::int64_t i = 0; i < 100; ++i) {
        ASSERT_TRUE(trip.add(Other{kSecond}.echo(i * kMs, kUs, 0, kUs)));
    }
    EXPECT_EQ(trip.jumps(), 0U);
    for (std::int64_t i = 100; i < 110; ++i) {
        ASSERT_TRUE(trip.add(Other{900 * kSecond}.echo(i * kMs, 9 * kUs, 0, 9 * kUs)));
    }
    EXPECT_EQ(trip.jumps(), 1U);
    EXPECT_EQ(trip.offset(110 * kMs)->value_ns, 900 * kSecond);
    EXPECT_LE(trip.smoothed_ns(), 18 * kUs);
}

TEST(RoundTripTest, a_time_of_the_other_is_told_by_our_clock) {
    RoundTrip trip;
    const Other other{-7 * kSecond};
    ASSERT_TRUE(trip.add(other.echo(20 * kSecond, 3 * kUs, kUs, kUs)));
    const std::int64_t written = 20 * kSecond + 500;
    const auto own = trip.own_time(other.clock(written), 20 * kSecond + 5 * kUs);
    ASSERT_TRUE(own);
    EXPECT_LE(std::abs(own->value_ns - written), own->error_ns);
    EXPECT_LE(own->error_ns, 2 * kUs + 1);
}

TEST(RoundTripTest, refuses_nonsense_and_stays_as_it_was) {
    RoundTrip trip;
    const Other other{kSecond};
    const RoundTrip::Echo good = other.echo(kSecond, 2 * kUs, kUs, 2 * kUs);
    ASSERT_TRUE(trip.add(good));
    const auto with = [&](auto RoundTrip::Echo::*field, std::int64_t value) {
        RoundTrip::Echo echo = good;
        echo.*field = value;
        return echo;
    };
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    using Echo = RoundTrip::Echo;
    for (const std::int64_t bad :
         {kLeast, kLeast + 1, std::int64_t{-1}, kMax, RoundTrip::kLatestNs + 1}) {
        for (const auto field :
             {&Echo::sent_ns, &Echo::held_ns, &Echo::other_sent_ns, &Echo::arrived_ns}) {
            EXPECT_FALSE(trip.add(with(field, bad))) << bad;
        }
        EXPECT_FALSE(trip.own_time(bad, kSecond)) << bad;
        EXPECT_FALSE(trip.offset(bad)) << bad;
    }
    EXPECT_FALSE(trip.add(with(&Echo::sent_ns, good.arrived_ns + 1))) << "not sent yet";
    EXPECT_FALSE(trip.add(with(&Echo::held_ns, 5 * kUs + 1))) << "held longer than it was away";
    EXPECT_FALSE(trip.add(with(&Echo::other_sent_ns, kUs - 1)))
        << "held since before its clock began";
    EXPECT_FALSE(trip.add(with(&Echo::arrived_ns, good.sent_ns + RoundTrip::kLongestNs + 1)));
    EXPECT_EQ(trip.smoothed_ns(), 4 * kUs);
    EXPECT_EQ(trip.jumps(), 0U);
    EXPECT_EQ(trip.offset(good.arrived_ns)->value_ns, kSecond);
}

TEST(RoundTripTest, times_at_the_ends_of_their_range_overflow_nothing) {
    constexpr std::int64_t kLatest = RoundTrip::kLatestNs;
    constexpr std::int64_t kLongest = RoundTrip::kLongestNs;
    RoundTrip trip;
    ASSERT_TRUE(trip.add({kLatest - kLongest, 0, 0, kLatest}));
    ASSERT_TRUE(trip.own_time(kLatest, kLatest));
    ASSERT_TRUE(trip.add({0, 0, kLatest, 0}));
    ASSERT_TRUE(trip.own_time(0, 0));
    ASSERT_TRUE(trip.offset(kLatest));
    ASSERT_TRUE(trip.add({kLatest, 0, 0, kLatest}));
    EXPECT_EQ(trip.jumps(), 2U);
    std::mt19937_64 random(62);
    const auto any = [&] { return static_cast<std::int64_t>(random() >> (random() % 64)); };
    for (int i = 0; i < 100'000; ++i) {
        const RoundTrip::Echo echo{any(), any(), any(), any()};  // in this order, as braces say
        trip.add(echo);
        trip.own_time(any(), any());
    }
}

}  // namespace
}  // namespace rmem
