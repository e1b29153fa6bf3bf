// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/write_stamps.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace rmem {
namespace {

struct WriteStampsTest : ::testing::Test {
    std::array<std::atomic<std::uint64_t>, WriteStamps::kPlaces> places{};
    WriteStamps stamps{places.data()};
};

TEST_F(WriteStampsTest, a_stamp_is_found_by_offset_and_value) {
    stamps.put(0x40, 7, 3, 1'000);
    const auto stamp = stamps.find(0x40, 7, 900, 1'250);
    ASSERT_TRUE(stamp);
    EXPECT_EQ(stamp->written_ns, 1'000);
    EXPECT_EQ(stamp->origin, 3U);
    EXPECT_FALSE(stamps.find(0x40, 8, 900, 1'250)) << "another value";
    EXPECT_FALSE(stamps.find(0x44, 7, 900, 1'250)) << "another word";
    EXPECT_FALSE(stamps.find(0x40 + 4 * WriteStamps::kPlaces, 7, 900, 1'250)) << "the same place";
}

TEST_F(WriteStampsTest, a_later_waiter_finds_nothing) {
    stamps.put(0x40, 7, 3, 1'000);
    EXPECT_TRUE(stamps.find(0x40, 7, 1'000, 1'250));
    EXPECT_FALSE(stamps.find(0x40, 7, 1'001, 1'250));
}

TEST_F(WriteStampsTest, an_empty_place_is_nobodys) {
    for (std::uint32_t value = 0; value < 10'000; ++value) {
        const auto stamp = stamps.find(0, value, 0, 100);
        EXPECT_TRUE(!stamp || stamp->written_ns == 0) << value;
        EXPECT_FALSE(stamps.find(0, value, 1, 100)) << value;
    }
}

TEST_F(WriteStampsTest, the_time_may_wrap_while_one_waits_but_the_wait_may_not_be_longer) {
    constexpr std::int64_t kLap = std::int64_t{1} << 40;
    stamps.put(0x40, 7, 3, 5 * kLap - 10);
    const auto stamp = stamps.find(0x40, 7, 5 * kLap - 20, 5 * kLap + 30);
    ASSERT_TRUE(stamp);
    EXPECT_EQ(stamp->written_ns, 5 * kLap - 10);
    EXPECT_FALSE(stamps.find(0x40, 7, 4 * kLap, 5 * kLap + 30));
}

}  // namespace
}  // namespace rmem
