// SPDX-License-Identifier: Apache-2.0

/// What programs of SCRAMNet GT cards read and write, by calls and by pointer.

#include "tests/support/scgt_cards.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

namespace rmem::test {
namespace {

struct GtTransfers : GtCardsOnLinks {
    GtCard a{0}, b{1};
};
CARDS_ON_ALL_LINKS(GtTransfers);

TEST_P(GtTransfers, a_dmas_last_word_is_a_flag_for_the_words_before_it) {
    std::vector<uint32> words(kBytes / 4);
    for (uint32 round = 1; round <= 20; ++round) {
        uint32 moved = 0;
        std::iota(words.begin(), words.end(), round * 100'000);
        expect_done(scgtWrite(a, 0, words.data(), kBytes, 0, &moved, nullptr));
        EXPECT_EQ(moved, kBytes);
        ASSERT_TRUE(comes([&] { return word(b, kBytes - 4) == words.back(); })) << round;
        std::vector<uint32> read(words.size());
        expect_done(scgtRead(b, 0, read.data(), kBytes, 0, &moved));
        EXPECT_EQ(moved, kBytes);
        ASSERT_EQ(read, words) << round;
    }
}

TEST_P(GtTransfers, plain_stores_travel_and_plain_loads_see_what_others_write) {
    auto* const mine = static_cast<uint32*>(scgtMapMem(a));
    auto* const others = static_cast<uint32*>(scgtMapMem(b));
    ASSERT_NE(mine, nullptr) << rmem_last_error();
    EXPECT_EQ(a->memMapPtr, mine);
    EXPECT_EQ(a->memMapSize, kBytes);
    EXPECT_EQ(scgtMapMem(a), mine);
    std::atomic_ref<uint32>(mine[5]).store(77);
    EXPECT_TRUE(comes([&] { return std::atomic_ref<uint32>(others[5]).load() == 77; }));
    expect_done(write_word(b, 24, 78));
    EXPECT_TRUE(comes([&] { return std::atomic_ref<uint32>(mine[6]).load() == 78; }));
    scgtUnmapMem(a);
    EXPECT_EQ(a->memMapPtr, nullptr);
    EXPECT_EQ(scgtMapMem(a), mine);
}

/// The vendor's bit error test.
TEST_P(GtTransfers, what_is_written_with_write_me_last_is_read_back) {
    expect_done(scgtSetState(a, SCGT_WRITE_ME_LAST, 1));
    for (const uint32 bytes : {4U, 64U, kBytes / 2}) {
        std::vector<uint32> words(bytes / 4), read(bytes / 4);
        for (uint32 round = 1; round <= 20; ++round) {
            uint32 moved = 0;
            std::iota(words.begin(), words.end(), round * 100'000);
            expect_done(scgtWrite(a, 0, words.data(), bytes, 0, &moved, nullptr));
            expect_done(scgtRead(a, 0, read.data(), bytes, 0, &moved));
            ASSERT_EQ(read, words) << bytes << " bytes, round " << round;
        }
    }
}

TEST_P(GtTransfers, a_write_with_write_me_last_comes_back_when_it_has_been_everywhere) {
    expect_done(scgtSetState(a, SCGT_WRITE_ME_LAST, 1));
    EXPECT_EQ(scgtGetState(a, SCGT_WRITE_ME_LAST), 1U);
    for (uint32 value = 1; value <= 20; ++value) {
        expect_done(write_word(a, 0x80, value));
        ASSERT_TRUE(comes([&] { return word(a, 0x80) == value; })) << value;
        EXPECT_EQ(word(b, 0x80), value);
    }
    expect_done(scgtSetState(a, SCGT_WRITE_ME_LAST, 0));
    EXPECT_EQ(scgtGetState(a, SCGT_WRITE_ME_LAST), 0U);
}

struct GtAccesses : GtCards {
    GtAccesses() : GtCards(LinkKind::direct) {}

    using Bytes = std::array<unsigned char, 16>;
    /// Writes 1, 2, … of which `bytes` at `offset` of 16 zeros, and tells what is there.
    static Bytes written(scgtHandle* card, uint32 offset, uint32 bytes, uint32 flags,
                         uint32 expected_moved) {
        Bytes from{}, found{};
        expect_done(scgtWrite(card, 0, from.data(), 16, 0, nullptr, nullptr));
        std::iota(from.begin(), from.end(), static_cast<unsigned char>(1));
        uint32 moved = 99;
        expect_done(scgtWrite(card, offset, from.data(), bytes, flags, &moved, nullptr));
        EXPECT_EQ(moved, expected_moved);
        expect_done(scgtRead(card, 0, found.data(), 16, 0, &moved));
        return found;
    }
    static Bytes read(scgtHandle* card, uint32 offset, uint32 bytes, uint32 flags,
                      uint32 expected_moved) {
        Bytes from{}, found{};
        std::iota(from.begin(), from.end(), static_cast<unsigned char>(1));
        expect_done(scgtWrite(card, 0, from.data(), 16, 0, nullptr, nullptr));
        uint32 moved = 99;
        expect_done(scgtRead(card, offset, found.data(), bytes, flags, &moved));
        EXPECT_EQ(moved, expected_moved);
        return found;
    }
};

TEST_F(GtAccesses, a_pio_rounds_its_offset_down_and_truncates_its_length) {
    GtCard card(0);
    ASSERT_NE(scgtMapMem(card), nullptr);
    EXPECT_EQ(written(card, 6, 7, SCGT_RW_PIO, 4), (Bytes{0, 0, 0, 0, 1, 2, 3, 4}));
    EXPECT_EQ(written(card, 3, 7, SCGR_RW_PIO_16_BIT, 6), (Bytes{0, 0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(written(card, 3, 7, SCGR_RW_PIO_8_BIT, 7), (Bytes{0, 0, 0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(written(card, 0, 3, SCGT_RW_PIO, 0), Bytes{});
    EXPECT_EQ(read(card, 6, 7, SCGT_RW_PIO, 4), (Bytes{5, 6, 7, 8}));
    EXPECT_EQ(read(card, 3, 7, SCGR_RW_PIO_16_BIT, 6), (Bytes{3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(read(card, 3, 2, SCGR_RW_PIO_8_BIT, 2), (Bytes{4, 5}));
    // The widest of several flags counts.
    EXPECT_EQ(written(card, 6, 7, SCGT_RW_PIO | SCGR_RW_PIO_8_BIT, 4),
              (Bytes{0, 0, 0, 0, 1, 2, 3, 4}));
}

TEST_F(GtAccesses, a_dma_swaps_as_its_flags_say) {
    GtCard card(0);
    EXPECT_EQ(written(card, 0, 8, SCGT_RW_DMA_BYTE_SWAP, 8), (Bytes{4, 3, 2, 1, 8, 7, 6, 5}));
    EXPECT_EQ(written(card, 4, 12, SCGT_RW_DMA_WORD_SWAP, 12),
              (Bytes{0, 0, 0, 0, 5, 6, 7, 8, 1, 2, 3, 4, 9, 10, 11, 12}));
    EXPECT_EQ(written(card, 0, 8, SCGT_RW_DMA_BYTE_SWAP | SCGT_RW_DMA_WORD_SWAP, 8),
              (Bytes{8, 7, 6, 5, 4, 3, 2, 1}));
    EXPECT_EQ(read(card, 0, 8, SCGT_RW_DMA_BYTE_SWAP, 8), (Bytes{4, 3, 2, 1, 8, 7, 6, 5}));
    EXPECT_EQ(read(card, 0, 12, SCGT_RW_DMA_WORD_SWAP, 12),
              (Bytes{5, 6, 7, 8, 1, 2, 3, 4, 9, 10, 11, 12}));
    // Nothing of a program's buffer is changed.
    std::array<uint32, 2> words = {1, 2};
    expect_done(scgtWrite(card, 0, words.data(), 8, SCGT_RW_DMA_BYTE_SWAP, nullptr, nullptr));
    EXPECT_EQ(words, (std::array<uint32, 2>{1, 2}));
}

TEST_F(GtAccesses, a_transfer_that_cannot_be_is_refused_and_moves_nothing) {
    GtCard card(0);
    std::array<uint32, 2> words = {1, 2};
    const unsigned bad = SCGT_BAD_PARAMETER;
    const auto expect_write = [&](uint32 offset, void* from, uint32 bytes, uint32 flags,
                                  uint32 result, const char* part) {
        uint32 moved = 99;
        expect_refused(scgtWrite(card, offset, from, bytes, flags, &moved, nullptr), result, part);
        EXPECT_EQ(moved, 0U);
        moved = 99;
        expect_refused(scgtRead(card, offset, from, bytes, flags, &moved), result, part);
        EXPECT_EQ(moved, 0U);
    };
    for (const uint32 flag : {SCGT_RW_PIO + 0U, SCGR_RW_PIO_8_BIT + 0U, SCGR_RW_PIO_16_BIT + 0U})
        expect_write(0, words.data(), 4, flag, bad, "scgtMapMem");
    expect_write(2, words.data(), 4, 0, bad, "whole words");
    expect_write(0, words.data(), 6, 0, bad, "whole words");
    expect_write(kBytes - 4, words.data(), 8, 0, bad, "beyond the memory");
    expect_write(kBytes, words.data(), 4, 0, bad, "beyond the memory");
    expect_write(0, words.data(), 0xFFFFFFFC, 0, bad, "beyond the memory");
    expect_write(0xFFFFFFFC, words.data(), 8, 0, bad, "beyond the memory");
    expect_write(0, nullptr, 4, 0, bad, "null pointer");
    expect_write(0, words.data(), 0, 0, bad, "nothing to");
    expect_write(0, words.data(), 4, SCGT_RW_DMA_PHYS_ADDR, SCGT_DMA_UNSUPPORTED, "physical");
    EXPECT_EQ(word(card, 0), 0U);
    EXPECT_EQ(word(card, kBytes - 4), 0U);
}

TEST_F(GtAccesses, a_transmitter_or_laser_that_is_off_lets_nothing_leave) {
    GtCard a(0), b(1);
    ASSERT_NE(scgtMapMem(a), nullptr);
    for (const uint32 state : {SCGT_TRANSMIT_ENABLE + 0U, SCGT_LASER_0_ENABLE + 0U}) {
        expect_done(scgtSetState(a, state, 0));
        uint32 value = 9;
        expect_refused(write_word(a, 0, 9), SCGT_LINK_ERROR, "is off");
        expect_refused(scgtWrite(a, 0, &value, 4, SCGT_RW_PIO, nullptr, nullptr), SCGT_LINK_ERROR,
                       "is off");
        expect_refused(send(a, SCGT_BROADCAST_INTR, 1, 2), SCGT_LINK_ERROR, "is off");
        EXPECT_EQ(word(a, 0), 0U);
        EXPECT_EQ(word(b, 0), 0U);
        expect_done(write_word(b, 4, state));
        EXPECT_EQ(word(a, 4), state);
        expect_done(scgtSetState(a, state, 1));
    }
    // The laser of the link that is not selected does not matter.
    expect_done(scgtSetState(a, SCGT_LASER_0_ENABLE, 0));
    expect_done(scgtSetState(a, SCGT_ACTIVE_LINK, 1));
    expect_done(write_word(a, 0, 9));
    EXPECT_EQ(word(b, 0), 9U);
}

}  // namespace
}  // namespace rmem::test
