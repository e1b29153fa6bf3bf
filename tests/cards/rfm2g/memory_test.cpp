// SPDX-License-Identifier: Apache-2.0

/// Pointers to the memory of an RFM2g card, its window, and its memory offset.

#include "tests/support/rfm2g_cards.hpp"

#include <cstring>

namespace rmem::test {
namespace {

using Words = volatile RFM2G_UINT32*;

class CardMemory : public CardsOnLinks {
protected:
    const Card a{0}, b{1};

    static Words map(RFM2GHANDLE card, RFM2G_UINT64 offset, RFM2G_UINT32 pages) {
        volatile void* pointer = nullptr;
        EXPECT_EQ(RFM2gUserMemory(card, &pointer, offset, pages), RFM2G_SUCCESS)
            << rmem_last_error();
        return static_cast<Words>(pointer);
    }
};
CARDS_ON_ALL_LINKS(CardMemory);

TEST_P(CardMemory, stores_through_a_pointer_travel) {
    Words const all = map(a, 0, 4);
    Words const page = map(a, 8192, 1);
    EXPECT_EQ(page, all + 2048);
    for (RFM2G_UINT32 i = 0; i < 4; ++i) page[i] = 0xA5A50000 + i;
    all[0] = 1;
    ASSERT_TRUE(comes([&] { return has(b, 0, 1); }));
    for (RFM2G_UINT32 i = 0; i < 4; ++i) EXPECT_TRUE(has(b, 8192 + 4 * i, 0xA5A50000 + i));
    EXPECT_EQ(RFM2gPoke32(b, 16, 7), RFM2G_SUCCESS);
    EXPECT_TRUE(comes([&] { return all[4] == 7; }));
    volatile void* pointer = page;
    EXPECT_EQ(RFM2gUnMapUserMemory(a, &pointer, 1), RFM2G_SUCCESS);
    EXPECT_EQ(pointer, nullptr);
    all[1] = 2;  // of which the other pointer knows nothing
    EXPECT_TRUE(comes([&] { return has(b, 4, 2); }));
}

TEST_P(CardMemory, bytes_are_rounded_up_to_pages) {
    volatile void* pointer = nullptr;
    EXPECT_EQ(RFM2gUserMemoryBytes(a, &pointer, 12288, 4096), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gUnMapUserMemoryBytes(a, &pointer, 4096), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gUserMemoryBytes(a, &pointer, 12288, 4097), RFM2G_OUT_OF_RANGE);
    EXPECT_EQ(RFM2gMapDeviceMemory(a, RFM2GMEM, &pointer), RFM2G_SUCCESS);
    EXPECT_EQ(pointer, map(a, 0, 1));
    EXPECT_EQ(RFM2gUnMapDeviceMemory(a, RFM2GMEM, &pointer), RFM2G_SUCCESS);
    EXPECT_EQ(pointer, nullptr);
}

TEST_P(CardMemory, a_dma_buffer_is_memory_of_the_process) {
    Words const buffer = map(a, 0x7F000000 | RFM2G_DMA_MMAP_OFFSET, 16);  // more than the memory
    buffer[0] = 5;
    buffer[16383] = 6;
    EXPECT_TRUE(has(a, 0, 0));
    EXPECT_EQ(RFM2gWrite(a, 64, const_cast<RFM2G_UINT32*>(buffer), 4), RFM2G_SUCCESS);
    EXPECT_TRUE(comes([&] { return has(b, 64, 5); }));
    map(a, RFM2G_DMA_MMAP_OFFSET, 1)[0] = 1;  // is unmapped with the handle
    volatile void* pointer = buffer;
    EXPECT_EQ(RFM2gUnMapUserMemory(a, &pointer, 16), RFM2G_SUCCESS);
    pointer = buffer;
    expect_refused(RFM2gUnMapUserMemory(a, &pointer, 16), RFM2G_OS_ERROR, "no memory of this");
}

TEST_P(CardMemory, a_pointer_that_there_is_not_is_refused) {
    volatile void* pointer = nullptr;
    expect_refused(RFM2gUserMemory(a, &pointer, 0, 0), RFM2G_BAD_PARAMETER_4, "nothing");
    expect_refused(RFM2gUserMemoryBytes(a, &pointer, 0, 0), RFM2G_BAD_PARAMETER_4, "nothing");
    expect_refused(RFM2gUserMemory(a, &pointer, 0, 5), RFM2G_OUT_OF_RANGE, "beyond the memory");
    expect_refused(RFM2gUserMemory(a, &pointer, 16384, 1), RFM2G_OUT_OF_RANGE, "beyond");
    expect_refused(RFM2gUserMemory(a, &pointer, 0xFFFFFFFFFFFFF000, 1), RFM2G_OUT_OF_RANGE,
                   "beyond");
    expect_refused(RFM2gUserMemory(a, &pointer, 0, 0xFFFFFFFF), RFM2G_OUT_OF_RANGE, "beyond");
    expect_refused(RFM2gUserMemory(a, &pointer, 64, 1), RFM2G_BAD_PARAMETER_3, "page");
    expect_refused(RFM2gUserMemory(a, &pointer, 4096 | RFM2G_BAR0_MMAP_OFFSET, 1),
                   RFM2G_BAD_PARAMETER_3, "page");
    expect_refused(RFM2gUserMemory(a, &pointer, RFM2G_BAR2_MMAP_OFFSET, 1), RFM2G_NOT_SUPPORTED,
                   "RFM2gReadReg");
    EXPECT_EQ(RFM2gMapDeviceMemory(a, RFM2GCTRLREGMEM, &pointer), RFM2G_NOT_SUPPORTED);
    EXPECT_EQ(RFM2gMapDeviceMemory(a, RFM2GCFGREGMEM, &pointer), RFM2G_NOT_SUPPORTED);
    EXPECT_EQ(RFM2gMapDeviceMemory(a, RFM2GCFGREGIO, &pointer), RFM2G_BAD_PARAMETER_2);
    EXPECT_EQ(pointer, nullptr);
    EXPECT_EQ(RFM2gUnMapUserMemory(a, &pointer, 1), RFM2G_BAD_PARAMETER_2);
    EXPECT_EQ(RFM2gUnMapDeviceMemory(a, RFM2GMEM, &pointer), RFM2G_BAD_PARAMETER_3);
    int other = 0;
    pointer = &other;
    EXPECT_EQ(RFM2gUnMapUserMemory(a, &pointer, 0), RFM2G_BAD_PARAMETER_3);
    EXPECT_EQ(RFM2gUnMapUserMemory(a, &pointer, 1), RFM2G_OS_ERROR);
    EXPECT_EQ(RFM2gUnMapDeviceMemory(a, RFM2GCFGREGIO, &pointer), RFM2G_BAD_PARAMETER_2);
}

// ---- The window and the memory offset

constexpr RFM2G_UINT32 kMegabyte = 1U << 20;

struct WindowedCards : TwoCards {
    WindowedCards() : TwoCards(LinkKind::direct, {{"RMEM_SIZE", "70M"}}) {
        ::setenv("RMEM_RFM2G_WINDOW", "2M", 1);
    }
    ~WindowedCards() override { ::unsetenv("RMEM_RFM2G_WINDOW"); }
};

TEST_F(WindowedCards, see_a_part_of_the_memory_that_slides) {
    const Card a(0);
    ::unsetenv("RMEM_RFM2G_WINDOW");
    const Card b(1);
    RFM2G_UINT32 offset = 9, size = 0;
    EXPECT_EQ(RFM2gGetSlidingWindow(a, &offset, &size), RFM2G_SUCCESS);
    EXPECT_EQ(offset, 0U);
    EXPECT_EQ(size, 2 * kMegabyte);
    EXPECT_EQ(RFM2gGetSlidingWindow(b, &offset, &size), RFM2G_SUCCESS);
    EXPECT_EQ(size, 70 * kMegabyte);
    EXPECT_EQ(RFM2gSetSlidingWindow(b, 0), RFM2G_SUCCESS);

    EXPECT_EQ(RFM2gSetSlidingWindow(a, 6 * kMegabyte), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gGetSlidingWindow(a, &offset, nullptr), RFM2G_SUCCESS);
    EXPECT_EQ(offset, 6 * kMegabyte);
    EXPECT_EQ(RFM2gPoke32(a, 16, 5), RFM2G_SUCCESS);
    EXPECT_TRUE(has(b, 6 * kMegabyte + 16, 5));
    RFM2G_UINT32 word = 6, found = 0;
    EXPECT_EQ(RFM2gWrite(a, 20, &word, 4), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gRead(b, 6 * kMegabyte + 20, &found, 4), RFM2G_SUCCESS);
    EXPECT_EQ(found, 6U);
    volatile void* pointer = nullptr;
    ASSERT_EQ(RFM2gUserMemory(a, &pointer, 0, 512), RFM2G_SUCCESS);
    static_cast<Words>(pointer)[6] = 7;
    EXPECT_TRUE(has(b, 6 * kMegabyte + 24, 7));
    // By the register, too.
    EXPECT_EQ(RFM2gReadReg(a, RFM2GCFGREGMEM, rfmor_las1rr, 4, &found), RFM2G_SUCCESS);
    EXPECT_EQ(found, RFMOR_LAS1RR_RANGE_2M);
    EXPECT_EQ(RFM2gWriteReg(a, RFM2GCFGREGMEM, rfmor_las1ba, 4, 68 * kMegabyte | 1), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gPoke8(a, 2 * kMegabyte - 1, 8), RFM2G_SUCCESS);
    EXPECT_TRUE(has(b, 70 * kMegabyte - 4, 8U << 24));
}

TEST_F(WindowedCards, refuse_what_is_beyond_their_window) {
    const Card a(0);
    RFM2G_UINT32 word = 0;
    volatile void* pointer = nullptr;
    for (const RFM2G_STATUS status :
         {RFM2gPeek32(a, 2 * kMegabyte, &word), RFM2gPoke32(a, 2 * kMegabyte, 1),
          RFM2gRead(a, 2 * kMegabyte - 2, &word, 4), RFM2gWrite(a, 2 * kMegabyte - 2, &word, 4),
          RFM2gReadReg(a, RFM2GMEM, 2 * kMegabyte, 4, &word),
          RFM2gWriteReg(a, RFM2GMEM, 2 * kMegabyte, 4, word)}) {
        expect_refused(status, RFM2G_OS_ERROR, "move the window");
    }
    EXPECT_EQ(RFM2gPeek32(a, 70 * kMegabyte, &word), RFM2G_OUT_OF_RANGE);
    // But for a DMA.
    volatile void* buffer = nullptr;
    ASSERT_EQ(RFM2gUserMemory(a, &buffer, RFM2G_DMA_MMAP_OFFSET, 1), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gSetDMAThreshold(a, 0), RFM2G_SUCCESS);
    void* const dma = const_cast<void*>(buffer);
    EXPECT_EQ(RFM2gSetSlidingWindow(a, 2 * kMegabyte), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gRead(a, 68 * kMegabyte - 8, dma, 8), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gWrite(a, 68 * kMegabyte - 7, dma, 8), RFM2G_OS_ERROR);
    EXPECT_EQ(RFM2gRead(a, 70 * kMegabyte - 7, dma, 8), RFM2G_OUT_OF_RANGE);
    EXPECT_EQ(RFM2gSetSlidingWindow(a, 0), RFM2G_SUCCESS);
    expect_refused(RFM2gUserMemory(a, &pointer, 4096, 512), RFM2G_MEM_NOT_MAPPED, "window");
    expect_refused(RFM2gSetSlidingWindow(a, kMegabyte), RFM2G_BAD_PARAMETER_2, "no multiple");
    expect_refused(RFM2gSetSlidingWindow(a, 70 * kMegabyte), RFM2G_OUT_OF_RANGE, "beyond");
    expect_refused(RFM2gSetSlidingWindow(a, 0xFFE00000), RFM2G_OUT_OF_RANGE, "beyond");
}

TEST_F(WindowedCards, begin_at_their_memory_offset) {
    ::unsetenv("RMEM_RFM2G_WINDOW");
    const Card a(0), b(1);
    EXPECT_EQ(got(RFM2gGetMemoryOffset, a), RFM2G_MEM_OFFSET0);
    EXPECT_EQ(RFM2gSetMemoryOffset(a, RFM2G_MEM_OFFSET1), RFM2G_SUCCESS);
    EXPECT_EQ(got(RFM2gGetMemoryOffset, a), RFM2G_MEM_OFFSET1);
    EXPECT_EQ(RFM2gPoke32(a, 64, 5), RFM2G_SUCCESS);
    EXPECT_TRUE(has(b, 64 * kMegabyte + 64, 5));
    EXPECT_TRUE(has(a, 64, 5));
    RFM2G_UINT32 found = 0;
    expect_refused(RFM2gPeek32(a, 6 * kMegabyte, &found), RFM2G_OUT_OF_RANGE, "memory offset");
    expect_refused(RFM2gSetMemoryOffset(a, RFM2G_MEM_OFFSET2), RFM2G_OUT_OF_RANGE, "RMEM_SIZE");
    EXPECT_EQ(lcsr(a) & (RFM2G_LCSR_OFF1 | RFM2G_LCSR_OFF0), RFM2G_LCSR_OFF0);
    EXPECT_EQ(lcsr(a) & RFM2G_LCSR_CFG, 0x100000U);  // 128 MB
    EXPECT_EQ(RFM2gClearReg(a, RFM2GCTRLREGMEM, rfm2g_lcsr, 4, RFM2G_LCSR_OFF0), RFM2G_SUCCESS);
    EXPECT_TRUE(has(a, 64, 0));
}

}  // namespace
}  // namespace rmem::test
