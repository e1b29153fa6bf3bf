// SPDX-License-Identifier: Apache-2.0

/// Mapping a SCRAMNet+ card and letting it go, and what every call refuses without one.

#include "tests/support/scramnet_cards.hpp"

#include <array>
#include <cstddef>
#include <future>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

struct OpeningPlusCards : PlusCards {
    OpeningPlusCards() : PlusCards(LinkKind::direct) {}
};

TEST_F(OpeningPlusCards, a_unit_that_is_not_there_says_how_to_start_one) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(sp_scram_init(3), -4);
    EXPECT_EQ(scr_reg_mm(MAP), -1);
    EXPECT_EQ(scr_mem_mm(MAP), -1);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("rmem node --unit 3"));
    expect_refused(sp_scram_init(-1), "no unit -1");
    expect_refused(sp_cfg_read(-1), "no unit -1");
    EXPECT_EQ(scr_registers_mapped, 0);
    EXPECT_EQ(scr_memory_mapped, 0);
    EXPECT_EQ(sp_cfg_read(0), 0);
}

TEST_F(OpeningPlusCards, programs_of_a_unit_need_not_be_counted) {
    const Peer peer(0);
    Child other([] {
        const PlusCard another(0);
        EXPECT_EQ(write_word(16, 5), 0);
    });
    EXPECT_EQ(other.wait(), 0);
    EXPECT_TRUE(has(peer, 16, 5));
}

TEST_F(OpeningPlusCards, registers_and_memory_are_mapped_each_by_itself) {
    EXPECT_EQ(scr_reg_mm(MAP), 0);
    EXPECT_EQ(scr_registers_mapped, 1);
    EXPECT_EQ(sp_mem_size(), kBytes);
    EXPECT_EQ(get_base_mem(), nullptr);
    expect_sentence("not mapped");
    EXPECT_EQ(scr_mem_mm(MAP), 0);
    const SCR_LONG_PTR memory = get_base_mem();
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(scr_reg_mm(UNMAP), 0);
    expect_refused(scr_reg_mm(UNMAP), "not mapped");
    memory[kBytes / 4 - 1] = 5;
    EXPECT_EQ(get_base_mem(), memory);
    EXPECT_EQ(scr_mem_mm(UNMAP), 0);
    EXPECT_EQ(get_base_mem(), nullptr);
    expect_refused(scr_mem_mm(UNMAP), "not mapped");
    expect_refused(scr_mem_mm(7), "MAP (0)");
    expect_refused(scr_reg_mm(7), "MAP (0)");
}

TEST_F(OpeningPlusCards, unmapping_waits_for_calls_so_that_the_unit_can_be_mapped_at_once) {
    for (int round = 0; round < 20; ++round) {
        ASSERT_EQ(sp_scram_init(0), 0) << rmem_last_error();
        std::vector<std::byte> words(kBytes);
        const auto until_closed = [&](auto&& call) {
            return std::async(std::launch::async, [call] {
                while (call() == 0) {
                }
            });
        };
        const std::array callers = {
            until_closed([&] { return scr_dma_write(words.data(), 0, kBytes); }),
            until_closed([] { return csr(0) == 0xFFFF ? -1 : 0; })};
        EXPECT_EQ(scr_mem_mm(UNMAP), 0);
        EXPECT_EQ(scr_reg_mm(UNMAP), 0);
        ASSERT_EQ(sp_scram_init(0), 0) << rmem_last_error();
        EXPECT_EQ(scr_mem_mm(UNMAP), 0);
        EXPECT_EQ(scr_reg_mm(UNMAP), 0);
        for (const auto& caller : callers) caller.wait();
    }
}

TEST_F(OpeningPlusCards, memory_that_cannot_be_mapped_leaves_nothing_mapped) {
    ::setenv("RMEM_STORES", "sometimes", 1);
    EXPECT_EQ(sp_scram_init(0), -3);
    expect_sentence("RMEM_STORES");
    EXPECT_EQ(scr_registers_mapped, 0);
    expect_refused(scr_mem_mm(MAP), "RMEM_STORES");
    ::unsetenv("RMEM_STORES");
    const PlusCard card(0);
    EXPECT_EQ(scr_registers_mapped, 1);
}

TEST_F(OpeningPlusCards, a_process_has_one_unit_at_a_time) {
    EXPECT_EQ(sp_cfg_read(1), 0);
    EXPECT_EQ(scr_reg_mm(MAP), 0);
    EXPECT_EQ(csr(SCR_CSR3), 0x0101U);
    expect_refused(sp_scram_init(0), "unit 1 is mapped");
    expect_refused(sp_cfg_read(0), "unit 1 is mapped");
    EXPECT_EQ(sp_scram_init(1), 0);
    EXPECT_EQ(scr_reg_mm(UNMAP), 0);
    EXPECT_EQ(scr_mem_mm(UNMAP), 0);
    EXPECT_EQ(sp_scram_init(), 0);
    EXPECT_EQ(csr(SCR_CSR3), 0x0001U);
    EXPECT_EQ(scr_mem_mm(UNMAP), 0);
    EXPECT_EQ(scr_reg_mm(UNMAP), 0);
}

TEST_F(OpeningPlusCards, every_call_refuses_without_a_card) {
    std::array<char, 8> path{"none"};
    std::uint32_t word = 7;
    unsigned char id = 9, count = 9;
    int bits = 9;
    rd_fifo fifo{};
    fifo.mt_flag = 9;
    rw_scr access{REG_RD, SCR_CSR0, 9};
    const char* const why = "no card is mapped";
    EXPECT_EQ(sp_mem_size(), 0U);
    expect_sentence(why);
    EXPECT_EQ(csr(SCR_CSR0), 0xffffU);
    EXPECT_EQ(scr_acr_read(0), 0);
    EXPECT_EQ(sp_stm_mm(Byte_mode), FALSE);
    EXPECT_EQ(sp_gtm_mm(), Long_mode);
    EXPECT_EQ(scr_read_int_fifo(&word), 0);
    EXPECT_EQ(word, 7U);
    scr_id_mm(&id, &count);
    char node = 9, nodes = 9;  // as the header for Windows has them
    scr_id_mm(&node, &nodes);
    EXPECT_EQ(node, id);
    EXPECT_EQ(nodes, count);
    EXPECT_EQ(id + count, 18);
    scr_fifo_mm(RD_FIFO, &fifo);
    EXPECT_EQ(fifo.mt_flag, 9);
    scr_rw_mm(&access);
    EXPECT_EQ(access.csr_arg, 9);
    for (const int result :
         {scr_dma_read(&word, 0, 4), scr_dma_write(&word, 0, 4), scr_load_mm(path.data(), MEM),
          scr_save_mm(path.data(), ACR), scr_fswin_mm(), sp_protocol(BURST),
          sp_set_cntr(CNTR_ERRORS), sp_txrx_id(1), sp_rx_id(1), sp_msg_life(1), sp_net_to(1),
          sp_set_vp(VP_READ, 0), sp_set_sm_addr(0), sp_bist_rd(&bits)})
        expect_refused(result, why);
    scr_reset_mm();
    scr_mclr_mm(MEM);
    scr_smem_mm(ACR, 1);
    scr_acr_write(0, ACR_RIE);
    set_csr(SCR_CSR0, 1);
    scr_lnk_mm(RST_LNK);
    scr_dfltr_mm(FLT_ALL);
    scr_wml_mm(WRITE_ME_LAST);
    scr_acr_mm(ACR);
    scr_int_mm(RX_INT, INTALL);
    expect_sentence(why);
}

TEST_F(OpeningPlusCards, a_forked_child_maps_a_unit_of_its_own) {
    const PlusCard card(0);
    get_base_mem()[1] = 11;
    Child other([] {
        EXPECT_EQ(get_base_mem(), nullptr);
        EXPECT_EQ(scr_memory_mapped, 0);
        expect_refused(scr_mem_mm(UNMAP), "not mapped");
        const PlusCard own(1);
        EXPECT_EQ(csr(SCR_CSR3), 0x0102U);
        EXPECT_EQ(get_base_mem()[1], 11U);
        get_base_mem()[1] = 12;
    });
    EXPECT_EQ(other.wait(), 0);
    EXPECT_TRUE(comes([] { return get_base_mem()[1] == 12; }));
}

struct EndingPlusCards : PlusCards {
    EndingPlusCards() : PlusCards(LinkKind::udp) {}
};

TEST_F(EndingPlusCards, what_a_program_stores_before_it_exits_arrives) {
    const Peer peer(1);
    Child program([] {
        EXPECT_EQ(sp_scram_init(0), 0) << rmem_last_error();
        for (std::uint32_t i = 0; i < 200; ++i) get_base_mem()[i] = i + 1;
        std::exit(::testing::Test::HasFailure() ? 1 : 0);
    });
    EXPECT_EQ(program.wait(), 0);
    EXPECT_TRUE(has(peer, 796, 200));
}

}  // namespace
}  // namespace rmem::test
