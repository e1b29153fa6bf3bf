// SPDX-License-Identifier: Apache-2.0

/// The memory of SCRAMNet+ cards: stores, transfers, byte orders, files.

#include "tests/support/scramnet_cards.hpp"

#include <array>
#include <fstream>
#include <vector>

namespace rmem::test {
namespace {

using Words = std::vector<std::uint32_t>;

struct MemoryOfPlusCards : PlusCardsOnLinks {};
CARDS_ON_ALL_LINKS(MemoryOfPlusCards);

TEST_P(MemoryOfPlusCards, two_programs_exchange_by_stores_and_flags) {
    const PlusCard card(0);
    Child other([] {
        const PlusCard own(1);
        const SCR_LONG_PTR memory = get_base_mem();
        for (std::uint32_t i = 1; i <= 50; ++i) {
            EXPECT_TRUE(comes([=] { return memory[1] == i; }));
            EXPECT_EQ(memory[0], 100 + i);
            memory[2] = i;
        }
    });
    const SCR_LONG_PTR memory = get_base_mem();
    for (std::uint32_t i = 1; i <= 50; ++i) {
        memory[0] = 100 + i;
        memory[1] = i;
        EXPECT_TRUE(comes([=] { return memory[2] == i; }));
    }
    EXPECT_EQ(other.wait(), 0);
}

TEST_P(MemoryOfPlusCards, a_transfer_arrives_whole_when_its_last_word_does) {
    const PlusCard card(0);
    const Peer peer(1);
    Words sent(3000);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::uint32_t>(i + 1);
    EXPECT_EQ(scr_dma_write(sent.data(), 64, 12000), 0) << rmem_last_error();
    EXPECT_TRUE(has(peer, 64 + 12000 - 4, 3000));
    Words found(3000);
    ASSERT_EQ(rmem_read(peer, 64, found.data(), 12000), RMEM_OK);
    EXPECT_EQ(found, sent);
    found.assign(3000, 0);
    EXPECT_EQ(scr_dma_read(found.data(), 64, 12000), 0);
    EXPECT_EQ(found, sent);
}

struct MemoryOfAPlusCard : PlusCards {
    MemoryOfAPlusCard() : PlusCards(LinkKind::direct) {}
    const PlusCard card{0};

    std::string file(const char* name) const { return units_.folder() / name; }
    static int load(std::string path, int part) { return scr_load_mm(path.data(), part); }
    static int save(std::string path, int part) { return scr_save_mm(path.data(), part); }
};

TEST_F(MemoryOfAPlusCard, a_transfer_is_of_whole_words_within_the_memory) {
    std::array<std::uint32_t, 2> words{1, 2};
    EXPECT_EQ(scr_dma_write(words.data(), kBytes - 8, 8), 0);
    EXPECT_EQ(scr_dma_write(nullptr, 0, 0), 0);
    EXPECT_EQ(scr_dma_read(nullptr, kBytes, 0), 0);
    expect_refused(scr_dma_write(words.data(), kBytes - 4, 8), "beyond the memory");
    expect_refused(scr_dma_read(words.data(), ~0UL - 3, 8), "beyond the memory");
    expect_refused(scr_dma_read(words.data(), 0, ~0UL - 3), "beyond the memory");
    expect_refused(scr_dma_write(words.data(), 2, 4), "whole long words");
    expect_refused(scr_dma_read(words.data(), 0, 6), "whole long words");
    expect_refused(scr_dma_read(nullptr, 0, 4), "null pointer");
    EXPECT_EQ(get_base_mem()[kBytes / 4 - 1], 2U);
}

TEST_F(MemoryOfAPlusCard, transfers_turn_words_round_as_the_byte_order_says) {
    const auto written = [](unsigned char mode) {
        EXPECT_EQ(sp_stm_mm(mode), TRUE);
        EXPECT_EQ(sp_gtm_mm(), mode);
        EXPECT_EQ(write_word(0, 0x11223344), 0);
        std::uint32_t back = 0;
        EXPECT_EQ(scr_dma_read(&back, 0, 4), 0);
        EXPECT_EQ(back, 0x11223344U);
        return std::uint32_t{get_base_mem()[0]};
    };
    EXPECT_EQ(sp_gtm_mm(), Long_mode);
    EXPECT_EQ(written(Word_mode), 0x33441122U);
    EXPECT_EQ(written(Byte_mode), 0x44332211U);
    EXPECT_EQ(written(Long_mode), 0x11223344U);
    EXPECT_EQ(sp_stm_mm(3), FALSE);
    expect_sentence("no byte order 3");
    EXPECT_EQ(sp_gtm_mm(), Long_mode);
}

TEST_F(MemoryOfAPlusCard, memory_and_acrs_are_filled_and_cleared) {
    const Peer peer(1);
    const auto ends = [&](std::uint32_t value) {
        return has(peer, 0, value) && has(peer, kBytes - 4, value);
    };
    scr_smem_mm(MEM, 0xabcd1234);
    EXPECT_TRUE(ends(0xabcd1234));
    scr_smem_mm(ACR, ACR_HIPRO | 0xc0);
    EXPECT_EQ(scr_acr_read(0), ACR_HIPRO);
    EXPECT_EQ(scr_acr_read(kBytes / 4 - 1), ACR_HIPRO);
    scr_mclr_mm(ACR);
    EXPECT_EQ(scr_acr_read(0), 0);
    EXPECT_TRUE(ends(0xabcd1234));
    scr_mclr_mm(MEM);
    EXPECT_TRUE(ends(0));
    scr_smem_mm(5, 1);
    expect_sentence("MEM or ACR");
    EXPECT_TRUE(ends(0));
}

TEST_F(MemoryOfAPlusCard, memory_and_acrs_go_to_files_and_come_back) {
    get_base_mem()[0] = 5;
    get_base_mem()[kBytes / 4 - 1] = 6;
    scr_acr_write(9, ACR_TRIG1);
    EXPECT_EQ(save(file("memory"), MEM), 0) << rmem_last_error();
    EXPECT_EQ(save(file("acrs"), ACR), 0) << rmem_last_error();
    EXPECT_EQ(std::filesystem::file_size(file("memory")), kBytes);
    scr_mclr_mm(MEM);
    scr_mclr_mm(ACR);
    EXPECT_EQ(load(file("memory"), MEM), 0) << rmem_last_error();
    EXPECT_EQ(load(file("acrs"), ACR), 0) << rmem_last_error();
    EXPECT_EQ(get_base_mem()[0], 5U);
    EXPECT_EQ(get_base_mem()[kBytes / 4 - 1], 6U);
    EXPECT_EQ(scr_acr_read(9), ACR_TRIG1);
    EXPECT_EQ(scr_acr_read(8), 0);

    std::ofstream(file("short")) << "abcdef";
    EXPECT_EQ(load(file("short"), MEM), 0);
    EXPECT_EQ(get_base_mem()[0], 0x64636261U);
    EXPECT_EQ(get_base_mem()[1] & 0xffff, 0x6665U);
    expect_refused(load(file("memory"), ACR), "more than");
    expect_refused(load(file("none"), MEM), "none");
    expect_refused(save(units_.folder() / "no" / "folder", MEM), "folder");
    expect_refused(load(file("memory"), 3), "MEM or ACR");
    expect_refused(save(file("memory"), 3), "MEM or ACR");
    expect_refused(scr_load_mm(nullptr, MEM), "null pointer");
    expect_refused(scr_save_mm(nullptr, ACR), "null pointer");
}

}  // namespace
}  // namespace rmem::test
