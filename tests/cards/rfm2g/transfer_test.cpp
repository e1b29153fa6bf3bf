// SPDX-License-Identifier: Apache-2.0

/// Transfers between RFM2g cards, on every link: widths, limits, byte swapping.

#include "tests/support/rfm2g_cards.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

namespace rmem::test {
namespace {

constexpr RFM2G_UINT32 kBytes = 16384;

class Transfers : public CardsOnLinks {
protected:
    using Bytes = std::vector<unsigned char>;

    const Card a{0}, b{1};

    static Bytes counting(std::size_t size) {
        Bytes bytes(size);
        std::iota(bytes.begin(), bytes.end(), 1);
        return bytes;
    }
    static Bytes read(RFM2GHANDLE card, RFM2G_UINT32 offset, std::size_t size) {
        Bytes bytes(size);
        EXPECT_EQ(RFM2gRead(card, offset, bytes.data(), static_cast<RFM2G_UINT32>(size)),
                  RFM2G_SUCCESS)
            << rmem_last_error();
        return bytes;
    }
    static void write(RFM2GHANDLE card, RFM2G_UINT32 offset, Bytes bytes) {
        EXPECT_EQ(RFM2gWrite(card, offset, bytes.data(), static_cast<RFM2G_UINT32>(bytes.size())),
                  RFM2G_SUCCESS)
            << rmem_last_error();
    }
};
CARDS_ON_ALL_LINKS(Transfers);

TEST_P(Transfers, pokes_of_each_width_are_peeked_at_the_other_node) {
    EXPECT_EQ(RFM2gPoke8(a, 0x41, 0x11), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gPoke16(a, 0x42, 0x2233), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gPoke64(a, 0x48, 0x8877665544332211), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gPoke32(a, kBytes - 4, 0x44556677), RFM2G_SUCCESS);
    ASSERT_TRUE(comes([&] { return has(b, kBytes - 4, 0x44556677); }));
    for (const Card* card : {&a, &b}) {
        RFM2G_UINT8 u8 = 0;
        RFM2G_UINT16 u16 = 0;
        RFM2G_UINT64 u64 = 0;
        EXPECT_EQ(RFM2gPeek8(*card, 0x41, &u8), RFM2G_SUCCESS);
        EXPECT_EQ(RFM2gPeek16(*card, 0x42, &u16), RFM2G_SUCCESS);
        EXPECT_EQ(RFM2gPeek64(*card, 0x48, &u64), RFM2G_SUCCESS);
        EXPECT_EQ(u8, 0x11);
        EXPECT_EQ(u16, 0x2233);
        EXPECT_EQ(u64, 0x8877665544332211);
        EXPECT_TRUE(has(*card, 0x40, 0x22331100));
    }
}

TEST_P(Transfers, a_buffer_of_any_length_is_written_and_read) {
    const Bytes sent = counting(9001);
    write(a, 0x203, sent);
    EXPECT_EQ(RFM2gPoke32(a, 0, 1), RFM2G_SUCCESS);  // after it
    ASSERT_TRUE(comes([&] { return has(b, 0, 1); }));
    EXPECT_EQ(read(b, 0x203, sent.size()), sent);
    unsigned char nothing = 9;
    EXPECT_EQ(RFM2gWrite(a, kBytes, &nothing, 0), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gRead(a, kBytes, &nothing, 0), RFM2G_SUCCESS);
    EXPECT_EQ(nothing, 9);
}

TEST_P(Transfers, more_than_the_ring_has_room_for_waits_until_it_has) {
    const Bytes sent = counting(kBytes);
    for (unsigned i = 0; i < 200; ++i) write(a, 0, sent);
    EXPECT_EQ(RFM2gPoke32(a, 0, 7), RFM2G_SUCCESS);
    ASSERT_TRUE(comes([&] { return has(b, 0, 7); }));
    const Bytes found = read(b, 4, kBytes - 4);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), sent.begin() + 4));
}

TEST_P(Transfers, what_is_beyond_the_memory_or_at_no_multiple_is_refused) {
    RFM2G_UINT8 u8;
    RFM2G_UINT16 u16;
    RFM2G_UINT32 u32;
    RFM2G_UINT64 u64;
    for (const RFM2G_STATUS status :
         {RFM2gPeek8(a, kBytes, &u8), RFM2gPeek16(a, kBytes - 1, &u16),
          RFM2gPeek32(a, kBytes - 3, &u32), RFM2gPeek64(a, kBytes - 4, &u64),
          RFM2gPoke8(a, kBytes, 1), RFM2gPoke16(a, kBytes, 1), RFM2gPoke32(a, 0xFFFFFFFC, 1),
          RFM2gPoke64(a, kBytes - 4, 1), RFM2gRead(a, kBytes - 3, &u32, 4),
          RFM2gWrite(a, kBytes - 3, &u32, 4), RFM2gRead(a, 0xFFFFFFF0, &u32, 0x20),
          RFM2gWrite(a, 0x20, &u32, 0xFFFFFFF0)}) {
        expect_refused(status, RFM2G_OUT_OF_RANGE, "beyond the memory");
    }
    for (const RFM2G_STATUS status :
         {RFM2gPeek16(a, 1, &u16), RFM2gPeek32(a, 2, &u32), RFM2gPeek64(a, 4, &u64),
          RFM2gPoke16(a, 3, 1), RFM2gPoke32(a, 1, 1), RFM2gPoke64(a, 12, 1)}) {
        expect_refused(status, RFM2G_UNALIGNED_OFFSET, "no multiple of");
    }
}

TEST_P(Transfers, nothing_is_written_while_the_transmitter_is_off_or_looped_back) {
    RFM2G_UINT32 word = 5;
    for (const auto set : {RFM2gSetTransmit, RFM2gSetLoopback}) {
        const RFM2G_BOOL away = set == RFM2gSetTransmit ? RFM2G_OFF : RFM2G_ON;
        EXPECT_EQ(set(a, away), RFM2G_SUCCESS);
        expect_refused(RFM2gPoke32(a, 0, 5), RFM2G_WRITE_ERROR, "transmitter");
        expect_refused(RFM2gWrite(a, 0, &word, 4), RFM2G_WRITE_ERROR, "transmitter");
        expect_refused(RFM2gSendEvent(a, 1, RFM2GEVENT_INTR1, 0), RFM2G_DRIVER_ERROR,
                       "transmitter");
        EXPECT_TRUE(has(a, 0, 0));
        EXPECT_EQ(set(a, away == RFM2G_ON ? RFM2G_OFF : RFM2G_ON), RFM2G_SUCCESS);
    }
    EXPECT_EQ(RFM2gPoke32(a, 0, 5), RFM2G_SUCCESS);
    EXPECT_TRUE(comes([&] { return has(b, 0, 5); }));
}

TEST_P(Transfers, byte_swapping_reverses_each_word_of_reads_and_writes_alone) {
    EXPECT_EQ(RFM2gSetPIOByteSwap(a, RFM2G_ON), RFM2G_SUCCESS);
    write(a, 0x100, {1, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_EQ(RFM2gPoke32(a, 0x110, 0x01020304), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gPoke8(a, 0x114, 9), RFM2G_SUCCESS);
    ASSERT_TRUE(comes([&] { return has(b, 0x114, 9); }));
    EXPECT_EQ(read(b, 0x100, 8), (Bytes{4, 3, 2, 1, 8, 7, 6, 5}));
    EXPECT_TRUE(has(b, 0x110, 0x01020304));
    EXPECT_TRUE(has(a, 0x110, 0x01020304));
    EXPECT_EQ(read(a, 0x100, 8), (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
    // Parts of words: a byte at n is at n ^ 3 of the memory.
    write(a, 0x121, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(RFM2gPoke32(a, 0, 1), RFM2G_SUCCESS);
    ASSERT_TRUE(comes([&] { return has(b, 0, 1); }));
    EXPECT_EQ(read(b, 0x120, 8), (Bytes{3, 2, 1, 0, 0, 6, 5, 4}));
    EXPECT_EQ(read(a, 0x121, 6), (Bytes{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(RFM2gSetPIOByteSwap(a, RFM2G_OFF), RFM2G_SUCCESS);
    EXPECT_EQ(read(a, 0x100, 4), (Bytes{4, 3, 2, 1}));
    EXPECT_EQ(got(RFM2gGetPIOByteSwap, a), RFM2G_OFF);
}

TEST_P(Transfers, a_dma_swaps_by_its_own_setting) {
    EXPECT_EQ(got(RFM2gGetDMAThreshold, a), 0xFFFFFFFFU);
    volatile void* mapped = nullptr;
    ASSERT_EQ(RFM2gUserMemory(a, &mapped, 0x12340000 | RFM2G_DMA_MMAP_OFFSET, 2), RFM2G_SUCCESS);
    auto* const buffer = static_cast<unsigned char*>(const_cast<void*>(mapped));
    write(a, 0, {1, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_EQ(RFM2gSetDMAByteSwap(a, RFM2G_ON), RFM2G_SUCCESS);
    EXPECT_EQ(got(RFM2gGetDMAByteSwap, a), RFM2G_ON);

    EXPECT_EQ(RFM2gRead(a, 0, buffer, 8), RFM2G_SUCCESS);  // below the threshold
    EXPECT_EQ(buffer[0], 1);
    EXPECT_EQ(RFM2gSetDMAThreshold(a, 8), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gRead(a, 0, buffer, 8), RFM2G_SUCCESS);
    EXPECT_EQ(Bytes(buffer, buffer + 8), (Bytes{4, 3, 2, 1, 8, 7, 6, 5}));
    EXPECT_EQ(read(a, 0, 8), (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));  // no buffer for a DMA
    EXPECT_EQ(RFM2gRead(a, 0, buffer + 8184, 8), RFM2G_SUCCESS);
    EXPECT_EQ(buffer[8191], 5);
    EXPECT_EQ(RFM2gWrite(a, 16, buffer, 8), RFM2G_SUCCESS);
    EXPECT_EQ(read(a, 16, 8), (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(RFM2gUnMapUserMemory(a, &mapped, 2), RFM2G_SUCCESS);
    EXPECT_EQ(mapped, nullptr);
}

TEST_P(Transfers, several_threads_use_one_handle) {
    constexpr unsigned kThreads = 4, kWrites = 500;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
        threads.emplace_back([this, t] {
            for (RFM2G_UINT32 i = 1; i <= kWrites; ++i) {
                RFM2G_UINT32 found = 0;
                EXPECT_EQ(RFM2gPoke32(a, t * 4, i), RFM2G_SUCCESS) << rmem_last_error();
                EXPECT_EQ(RFM2gPeek32(a, t * 4, &found), RFM2G_SUCCESS);
                EXPECT_EQ(found, i);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (unsigned t = 0; t < kThreads; ++t)
        EXPECT_TRUE(comes([&] { return has(b, t * 4, kWrites); }));
}

}  // namespace
}  // namespace rmem::test
