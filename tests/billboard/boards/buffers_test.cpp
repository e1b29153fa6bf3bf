// SPDX-License-Identifier: Apache-2.0
// The private bookkeeping of message buffers (billboard/boards/buffers.hpp).

#include "billboard/boards/buffers.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace {

using billboard::Buffers;

TEST(Buffers, buffers_of_no_bytes_have_addresses_of_their_own) {
    Buffers buffers(4096);
    std::set<std::size_t> places;
    for (int i = 0; i < 8; ++i) places.insert(buffers.offset(*buffers.allocate(0)));
    EXPECT_EQ(places.size(), 8U);
}

TEST(Buffers, buffers_that_are_small_go_behind_the_last_and_large_ones_into_the_first_gap) {
    Buffers buffers(std::size_t{1} << 20);
    const unsigned gap = *buffers.allocate(64 * 1024);
    EXPECT_EQ(buffers.offset(*buffers.allocate(100)), std::size_t{64} * 1024);
    buffers.free(gap);
    EXPECT_EQ(buffers.end(), 64U * 1024 + 128);
    EXPECT_EQ(buffers.offset(*buffers.allocate(100)), 64U * 1024 + 128);
    EXPECT_EQ(buffers.offset(*buffers.allocate(32 * 1024)), 0U);
}

TEST(Buffers, never_overlap_whatever_is_freed_in_between) {
    Buffers buffers(8192);
    std::uint32_t random = 1;
    std::vector<unsigned> held;
    for (int step = 0; step < 20'000; ++step) {
        random = random * 1664525 + 1013904223;
        if (random >> 31 != 0 && !held.empty()) {
            const std::size_t which = (random >> 8) % held.size();
            buffers.free(held[which]);
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
            continue;
        }
        const std::size_t bytes = (random >> 4) % 700;
        const auto index = buffers.allocate(bytes);
        if (!index) continue;
        const std::size_t start = buffers.offset(*index);
        ASSERT_LE(start + bytes, 8192U);
        for (const unsigned other : held) {
            const bool apart = start + bytes <= buffers.offset(other) ||
                               buffers.offset(other) + buffers.size(other) <= start;
            ASSERT_TRUE(apart) << "buffers " << *index << " and " << other;
        }
        held.push_back(*index);
    }
}

TEST(Buffers, are_thirty_two_at_most) {
    Buffers buffers(1 << 20);
    for (unsigned i = 0; i < billboard::kBuffers; ++i) ASSERT_TRUE(buffers.allocate(8));
    EXPECT_FALSE(buffers.allocate(8));
    buffers.free(17);
    EXPECT_EQ(buffers.allocate(8), 17U);
}

TEST(Buffers, buffers_that_are_busy_or_held_are_not_collected) {
    Buffers buffers(4096);
    const unsigned busy = *buffers.allocate(64), held = *buffers.allocate(64);
    const unsigned done = *buffers.allocate(64);
    buffers.hold(held);
    buffers.collect(Buffers::bit(busy));
    EXPECT_EQ(buffers.allocated(), Buffers::bit(busy) | Buffers::bit(held));
    EXPECT_EQ(buffers.allocate(64), done);
}

TEST(Buffers, buffers_as_large_as_the_partition_fit_alone) {
    Buffers buffers(4096);
    const auto whole = buffers.allocate(4096);
    ASSERT_TRUE(whole);
    EXPECT_FALSE(buffers.allocate(1));
    EXPECT_FALSE(buffers.allocate(4097));
    buffers.free(*whole);
    EXPECT_TRUE(buffers.allocate(4096));
}

TEST(BuffersDeathTest, check_that_what_is_freed_was_allocated) {
    Buffers buffers(4096);
    const unsigned index = *buffers.allocate(100);
    buffers.free(index);
    EXPECT_BROKEN_WHERE_CHECKED(buffers.free(index));
}

}  // namespace
