// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/batch_history.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <vector>

namespace rmem::udp {
namespace {

constexpr std::size_t kMax = 1472;

std::vector<std::byte> body_of(std::uint64_t sequence, std::size_t bytes) {
    std::vector<std::byte> body(bytes);
    for (std::size_t i = 0; i < bytes; ++i) body[i] = static_cast<std::byte>(sequence * 31 + i);
    return body;
}

void expect_body(const BatchHistory& history, std::uint64_t sequence, std::size_t bytes) {
    const auto found = history.find(sequence);
    const auto wanted = body_of(sequence, bytes);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin(), wanted.end()))
        << "batch " << sequence << " of " << bytes << " bytes";
}

TEST(BatchHistory, takes_memory_for_the_kinds_of_bodies_that_come) {
    constexpr std::uint32_t kPlaces = 64;
    BatchHistory history(kPlaces, kMax, kPlaces * kMax);
    EXPECT_EQ(history.memory_bytes(), 0U);
    ASSERT_TRUE(history.put(1, body_of(1, 8)));
    const std::size_t with_short = history.memory_bytes();
    EXPECT_GE(with_short, kPlaces * 64);
    ASSERT_TRUE(history.put(2, body_of(2, 64)));
    EXPECT_EQ(history.memory_bytes(), with_short);
    ASSERT_TRUE(history.put(3, body_of(3, 200)));
    EXPECT_EQ(history.memory_bytes(), with_short + kPlaces * 256);
    ASSERT_TRUE(history.put(4, body_of(4, kMax)));
    EXPECT_EQ(history.memory_bytes(), with_short + kPlaces * 256 + (kPlaces + 2) * kMax);
}

TEST(BatchHistory, keeps_bodies_of_all_sizes_beside_each_other) {
    BatchHistory history(2048, kMax, 2048 * kMax);
    for (std::size_t bytes = 0; bytes <= kMax; ++bytes) {
        ASSERT_TRUE(history.put(bytes + 1, body_of(bytes + 1, bytes)));
    }
    for (std::size_t bytes = 0; bytes <= kMax; ++bytes) {
        ASSERT_TRUE(history.contains(bytes + 1));
        expect_body(history, bytes + 1, bytes);
    }
    EXPECT_FALSE(history.put(kMax + 2, body_of(1, kMax + 1)));
    EXPECT_FALSE(history.contains(kMax + 2));
}

TEST(BatchHistory, uses_a_place_again_for_a_body_of_another_size) {
    BatchHistory history(8, 1000, 1000);
    std::uint64_t sequence = 1;
    for (const std::size_t bytes :
         std::initializer_list<std::size_t>{10, 1000, 64, 65, 257, 0, 999}) {
        ASSERT_TRUE(history.put(sequence, body_of(sequence, bytes)));
        expect_body(history, sequence, bytes);
        EXPECT_FALSE(history.contains(sequence - 8));
        sequence += 8;
    }
}

TEST(BatchHistory, keeps_as_many_bytes_of_long_bodies_as_it_says_and_forgets_older_ones) {
    constexpr std::size_t kKept = 10'000;
    BatchHistory history(1024, 1000, kKept);
    std::vector<std::size_t> sizes;
    std::uint64_t newest = 0;
    for (unsigned round = 0; round < 500; ++round) {
        sizes.push_back(257 + round * 97 % 744);
        ++newest;
        ASSERT_TRUE(history.put(newest, body_of(newest, sizes.back())));
        std::size_t behind = 0;
        for (std::uint64_t sequence = newest; sequence != 0; --sequence) {
            const std::size_t bytes = sizes[sequence - 1];
            if (behind + bytes <= kKept) {
                ASSERT_TRUE(history.contains(sequence)) << sequence << " of " << newest;
            }
            if (history.contains(sequence)) expect_body(history, sequence, bytes);
            behind += bytes;
            if (behind > 2 * kKept) {
                ASSERT_FALSE(history.contains(sequence));
                ASSERT_TRUE(history.find(sequence).empty());
            }
        }
    }
}

TEST(BatchHistory, touches_few_pages_for_short_bodies) {
    const auto faults = [] {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        return usage.ru_minflt;
    };
    constexpr std::uint32_t kPlaces = 4096;
    BatchHistory history(kPlaces, kMax, kPlaces * kMax);
    const auto body = body_of(1, 60);
    const auto before = faults();
    for (std::uint64_t sequence = 1; sequence <= kPlaces; ++sequence) history.put(sequence, body);
    // 64 pages of bodies and 16 of entries; one for each of the largest rooms would be 1472
    EXPECT_LE(faults() - before, 200);
}

}  // namespace
}  // namespace rmem::udp
