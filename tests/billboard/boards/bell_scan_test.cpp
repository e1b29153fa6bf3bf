// SPDX-License-Identifier: Apache-2.0
#include "billboard/boards/bell_scan.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace billboard {
namespace {

constexpr unsigned kWords = 16 * kScanBlock;

struct BellScan : ::testing::Test {
    alignas(64) std::uint32_t bells[kWords] = {};
    std::uint32_t seen[kWords] = {};

    unsigned find(unsigned from, unsigned to) const {
        return next_difference(bells, seen, from, to);
    }
};

TEST_F(BellScan, a_scan_of_equal_words_finds_none) {
    for (unsigned from = 0; from <= kWords; ++from) EXPECT_EQ(find(from, kWords), kWords);
    EXPECT_FALSE(any_difference(bells, seen, kWords));
}

TEST_F(BellScan, finds_each_single_word_that_differs_in_any_bit) {
    for (unsigned i = 0; i < kWords; ++i) {
        for (const std::uint32_t value : {1U, 0x80000000U, 0xffffffffU}) {
            bells[i] = value;
            EXPECT_EQ(find(0, kWords), i);
            EXPECT_EQ(find(i, kWords), i);
            EXPECT_EQ(find(i + 1, kWords), kWords);
            EXPECT_EQ(find(0, i), i);
            EXPECT_TRUE(any_difference(bells, seen, kWords));
            EXPECT_EQ(any_difference(bells, seen, kWords / 2), i < kWords / 2);
            bells[i] = 0;
        }
    }
}

TEST_F(BellScan, finds_the_first_of_several_from_any_start) {
    const std::vector<unsigned> places{3, 17, 31, 32, 130, 255};
    for (const unsigned i : places) seen[i] = 7;
    for (unsigned from = 0; from < kWords; ++from) {
        unsigned expected = kWords;
        for (auto i = places.rbegin(); i != places.rend(); ++i) {
            if (*i >= from) expected = *i;
        }
        EXPECT_EQ(find(from, kWords), expected) << "from " << from;
    }
}

TEST_F(BellScan, looks_at_nothing_in_an_empty_range) {
    bells[0] = bells[kScanBlock] = 1;
    EXPECT_EQ(find(0, 0), 0U);
    EXPECT_EQ(find(kScanBlock, kScanBlock), kScanBlock);
    EXPECT_EQ(find(kScanBlock + 1, kScanBlock), kScanBlock);
}

}  // namespace
}  // namespace billboard
