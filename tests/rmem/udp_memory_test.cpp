// SPDX-License-Identifier: Apache-2.0
#include "rmem/udp_memory.hpp"

#include "tests/support/udp_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace rmem {
namespace {

using test::UdpRing;

std::uint32_t word_of(const std::byte* bank, std::size_t offset) {
    return reinterpret_cast<const std::atomic<std::uint32_t>*>(bank + offset)->load();
}

// ---- Flush

/// So much takes the card milliseconds, and the network much less.
TEST(UdpMemory, flushed_means_shown_also_where_a_profile_holds_back_what_has_come) {
    const UdpRing ring(2, "scramnet-burst");
    const std::byte* const others = ring.node(1).bank();  // its helper applies from now on
    for (std::uint32_t round = 1; round <= 5; ++round) {
        const std::vector<std::uint32_t> words(UdpRing::kBytes / 4, round);
        ring.write(0, 0, words.data(), UdpRing::kBytes);
        ASSERT_TRUE(ring.node(0).flush(Deadline::in(kDefaultJoinTimeoutNs)));
        EXPECT_EQ(word_of(others, UdpRing::kBytes - 4), round);
    }
}

}  // namespace
}  // namespace rmem
