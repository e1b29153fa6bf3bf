// SPDX-License-Identifier: Apache-2.0
// ctest: tsan
#include "rmem/base/word_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace rmem {
namespace {

constexpr std::size_t kRoom = 640;

std::byte value_of(std::size_t i) {
    return static_cast<std::byte>(i * 7 + 1);
}

/// All sizes of whole words, at all places of the shared side modulo 32, of the other modulo 16.
template <class Copy>
void for_all_places(Copy copy) {
    for (std::size_t bytes = 0; bytes <= 512; bytes += kWordBytes) {
        for (std::size_t shared = 0; shared < 32; shared += kWordBytes) {
            for (std::size_t own = 0; own < 16; ++own) copy(bytes, shared, own);
        }
    }
}

TEST(WordBlock, a_block_is_stored_and_loaded_whole_and_nothing_beside_it) {
    alignas(64) std::array<std::byte, kRoom> from{}, to{};
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = value_of(i);
    const auto expect_moved = [&](auto move, std::size_t begin, std::size_t source,
                                  std::size_t bytes) {
        to.fill(std::byte{});
        move(to.data() + begin, from.data() + source, bytes);
        ASSERT_TRUE(std::equal(from.begin() + source, from.begin() + source + bytes, &to[begin]));
        const auto is_zero = [](std::byte b) { return b == std::byte{}; };
        ASSERT_TRUE(std::all_of(to.begin(), to.begin() + begin, is_zero));
        ASSERT_TRUE(std::all_of(to.begin() + begin + bytes, to.end(), is_zero));
    };
    for_all_places([&](std::size_t bytes, std::size_t shared, std::size_t own) {
        expect_moved(store_block, shared, own, bytes);
        expect_moved(load_block, own, shared, bytes);
    });
}

TEST(WordBlock, a_part_of_a_word_is_stored_and_nothing_beside_it) {
    for (unsigned part = 1; part <= kWholeWord; ++part) {
        alignas(kWordBytes) std::array<std::uint8_t, 12> to{};
        const std::array<std::uint8_t, kWordBytes> from{1, 2, 3, 4};
        to.fill(9);
        const auto bytes = static_cast<WordPart>(part);
        store_part(reinterpret_cast<std::byte*>(&to[4]), std::bit_cast<std::uint32_t>(from), bytes);
        std::vector<std::size_t> runs;
        for_each_run(bytes, std::as_bytes(std::span(from)),
                     [&](std::size_t first, std::span<const std::byte> run) {
                         for (std::size_t i = 0; i < run.size(); ++i) runs.push_back(first + i);
                     });
        for (std::size_t i = 0; i < to.size(); ++i) {
            const bool is_in = i / kWordBytes == 1 && (part >> i % kWordBytes & 1) != 0;
            EXPECT_EQ(to[i], is_in ? from[i % kWordBytes] : 9) << part;
            const auto visits = std::count(runs.begin(), runs.end(), i - kWordBytes);
            EXPECT_EQ(visits, is_in ? 1 : 0) << part;
        }
    }
    EXPECT_EQ(differing_part(0x01020304, 0x01120305), 0b0101);
    EXPECT_EQ(with_part(0x11223344, 0xAABBCCDD, 0b0110), 0x11BBCC44U);
    EXPECT_EQ(part_of_word(1, 2), 0b0110);
}

TEST(WordBlock, parts_of_one_word_that_several_store_at_once_are_all_kept) {
    constexpr unsigned kRounds = 20'000;
    for (const auto& [one, other] :
         {std::pair{0b0101, 0b1010}, {0b0111, 0b1000}, {0b0011, 0b1100}, {0b0110, 0b1001}}) {
        alignas(kLineBytes) std::array<std::byte, kLineBytes> memory{};
        const auto write = [&](int part) {
            for (unsigned i = 1; i <= kRounds; ++i)
                store_part(memory.data(), 0x0101'0101U * (i & 0x7F), static_cast<WordPart>(part));
        };
        std::thread second([&, part = other] { write(part); });
        write(one);
        second.join();
        std::uint32_t seen = 0;
        load_block(&seen, memory.data(), kWordBytes);
        EXPECT_EQ(seen, 0x0101'0101U * (kRounds & 0x7F)) << one;
    }
}

TEST(WordBlock, every_bit_of_a_block_counts_in_a_comparison_and_none_beside_it) {
    alignas(64) std::array<std::byte, kRoom> one{};
    alignas(64) std::array<std::byte, kRoom> other{};
    for (std::size_t bytes = 0; bytes <= 160; bytes += kWordBytes) {
        for (std::size_t place = 4; place < 36; place += kWordBytes) {
            const std::byte* const a = one.data() + place;
            const std::byte* const b = other.data() + place;
            for (std::size_t i = place - 1; i <= place + bytes; ++i) {
                const bool is_inside = i >= place && i < place + bytes;
                other[i] = std::byte{0x80};
                ASSERT_EQ(is_zero_block(b, bytes), !is_inside) << bytes << " bytes, " << i;
                ASSERT_EQ(is_same_block(a, b, bytes), !is_inside) << bytes << " bytes, " << i;
                other[i] = std::byte{};
            }
        }
    }
}

// Each word of a block is the one of a round, and a flag that follows shows the block of its round,
// or a later one.
TEST(WordBlock, no_word_is_torn_and_a_later_store_shows_the_block) {
    constexpr std::uint32_t kRounds = 20'000;
    constexpr std::size_t kWords = 61;
    alignas(64) std::array<std::byte, 512> shared{};
    std::byte* const block = shared.data() + 2 * kWordBytes;  // at no lane's beginning
    auto& flag = *reinterpret_cast<std::atomic<std::uint32_t>*>(shared.data() + 448);
    const std::jthread writer([&] {
        std::array<std::uint32_t, kWords> words{};
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            words.fill(round << 16 | (round & 0xffff));
            store_block(block, words.data(), sizeof words);
            flag.store(round, std::memory_order_release);
        }
    });
    std::array<std::uint32_t, kWords> seen{};
    for (std::uint32_t round = 0; round < kRounds;) {
        round = flag.load(std::memory_order_acquire);
        load_block(seen.data(), block, sizeof seen);
        for (const std::uint32_t word : seen) {
            EXPECT_EQ(word >> 16, word & 0xffff);
            EXPECT_GE(word & 0xffff, round & 0xffff);
        }
        if (HasFailure()) break;
    }
}

}  // namespace
}  // namespace rmem
