// SPDX-License-Identifier: Apache-2.0

/// The registers of SCRAMNet+ cards: modes, identity, status, the counter.

#include "rmem/base/check.hpp"
#include "tests/support/scramnet_cards.hpp"

#include <array>
#include <cstdio>
#include <string>

namespace rmem::test {
namespace {

struct RegistersOfAPlusCard : PlusCards {
    RegistersOfAPlusCard() : PlusCards(LinkKind::direct) {}
};

TEST_F(RegistersOfAPlusCard, settings_read_back_and_a_reset_clears_them) {
    const PlusCard card(0);
    EXPECT_EQ(sp_plus_find(), 1);
    EXPECT_EQ(sp_plus_flag, 1);
    for (const int number : {0, 2, 6, 7, 9, 10, 11, 12, 14, 15}) {
        EXPECT_EQ(csr(number), 0U) << number;
        set_csr(number, 0x8a55);
        EXPECT_EQ(csr(number), 0x8a55U) << number;
    }
    set_csr(SCR_CSR8, 0xffff);
    EXPECT_EQ(csr(SCR_CSR8), 0x8fffU);
    EXPECT_EQ(sp_stm_mm(Byte_mode), TRUE);
    scr_acr_write(3, ACR_TRIG2);
    scr_reset_mm();
    for (const int number : {0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
        EXPECT_EQ(csr(number), 0U) << number;
    EXPECT_EQ(sp_gtm_mm(), Long_mode);
    EXPECT_EQ(scr_acr_read(3), ACR_TRIG2);
}

TEST_F(RegistersOfAPlusCard, what_is_no_register_reads_as_a_bus_without_a_card) {
    const PlusCard card(0);
    EXPECT_EQ(csr(SCR_CSR16), 0xffffU);
    expect_sentence("no CSR 16");
    set_csr(-1, 5);
    expect_sentence("no CSR 255");
    rw_scr access{REG_WRT, SCR_CSR12, 0x20};
    scr_rw_mm(&access);
    access = {REG_RD, SCR_CSR12, 0};
    scr_rw_mm(&access);
    EXPECT_EQ(access.csr_arg, 0x20);
    access.rw_flag = REG_MDFY;
    scr_rw_mm(&access);
    expect_sentence("REG_RD");
    scr_rw_mm(nullptr);
    expect_sentence("null pointer");
}

TEST_F(RegistersOfAPlusCard, calls_of_modes_set_the_bits_that_they_are_of) {
    const PlusCard card(0);
    scr_lnk_mm(TX_ENB | RX_ENB);
    EXPECT_EQ(csr(SCR_CSR0), 0x8003U);
    scr_lnk_mm(RX_ENB | FLT_HGH);
    EXPECT_EQ(csr(SCR_CSR0), 0x8401U);
    scr_dfltr_mm(FLT_ALL);
    scr_acr_mm(ACR);
    EXPECT_EQ(csr(SCR_CSR0), 0x8c11U);
    scr_acr_mm(MEM);
    scr_dfltr_mm(FLT_OFF);
    scr_lnk_mm(RST_LNK);
    EXPECT_EQ(csr(SCR_CSR0), 0U);
    scr_int_mm(TX_INT, INTACR);
    scr_int_mm(RX_INT, INTACR | INTOWN);
    scr_int_mm(INT_ERR, SET_INT);
    EXPECT_EQ(csr(SCR_CSR0), unsigned{CSR0_NIE | CSR0_HIE | CSR0_MME | CSR0_IOE});
    EXPECT_EQ(csr(SCR_CSR2), unsigned{CSR2_ISEN});
    scr_int_mm(TX_INT, INTALL);
    scr_int_mm(RX_INT, INTALL);
    scr_int_mm(ERR_INT, CLR_INT);
    EXPECT_EQ(csr(SCR_CSR0), unsigned{CSR0_NIE | CSR0_OTF | CSR0_HIE | CSR0_ORF});
    EXPECT_EQ(csr(SCR_CSR2), 0U);
    scr_int_mm(TX_INT, RST_INT);
    scr_int_mm(RX_INT, RST_INT);
    EXPECT_EQ(csr(SCR_CSR0), 0U);
    scr_wml_mm(WRITE_ME_LAST);
    EXPECT_EQ(csr(SCR_CSR2), 0x0300U);
    scr_wml_mm(WRITE_DIRECT);
    EXPECT_EQ(csr(SCR_CSR2), 0U);
    scr_wml_mm(WRITE_ME_LAST);
    scr_nwh_mm(RST_NWH);
    EXPECT_EQ(csr(SCR_CSR2), 0U);
}

TEST_F(RegistersOfAPlusCard, protocols_have_the_bits_of_the_manual) {
    const PlusCard card(0);
    scr_wml_mm(WRITE_ME_LAST);
    constexpr std::array kCodes{0x0040U, 0xc040U, 0x4040U, 0x1040U, 0xd040U, 0x5040U};
    for (unsigned mode = GOLD; mode <= PLATINUM_PLUS; ++mode) {
        EXPECT_EQ(sp_protocol(mode), 0);
        EXPECT_EQ(csr(SCR_CSR2), kCodes[mode - GOLD] | 0x0300U) << mode;
    }
    expect_refused(sp_protocol(0), "sp_protocol knows no 0");
    expect_refused(sp_protocol(7), "sp_protocol knows no 7");
    EXPECT_EQ(csr(SCR_CSR2), 0xd040U ^ 0xd040U ^ kCodes[5] ^ 0x0300U);
}

TEST_F(RegistersOfAPlusCard, arguments_that_no_call_knows_are_refused_and_change_nothing) {
    const PlusCard card(0);
    const auto expect_unchanged = [](const char* part) {
        expect_sentence(part);
        EXPECT_EQ(csr(SCR_CSR0) | csr(SCR_CSR2), 0U);
    };
    scr_lnk_mm(0x100);
    expect_unchanged("scr_lnk_mm knows no 256");
    scr_dfltr_mm(0x800);
    expect_unchanged("FLT_HGH");
    scr_wml_mm(2);
    expect_unchanged("WRITE_ME_LAST");
    scr_acr_mm(1);
    expect_unchanged("MEM or ACR");
    scr_int_mm(SCR_LNK, INTALL);
    expect_unchanged("TX_INT (3)");
    scr_int_mm(TX_INT, INTALL | INTOWN);
    expect_unchanged("INTALL");
    scr_int_mm(RX_INT, 0);
    expect_unchanged("INTACR");
    scr_int_mm(INT_ERR, INTALL);
    expect_unchanged("SET_INT");
    scr_fifo_mm(SCR_LNK, nullptr);
    expect_unchanged("RST_FIFO");
    scr_fifo_mm(RD_FIFO, nullptr);
    expect_unchanged("null pointer");
}

TEST_F(RegistersOfAPlusCard, the_identity_is_the_nodes_until_it_is_set) {
    const PlusCard card(1);
    unsigned char id = 0, count = 0;
    scr_id_mm(&id, &count);
    EXPECT_EQ(id, 1);
    EXPECT_EQ(count, 1);
    {
        const Peer peer(0);
        EXPECT_EQ(csr(SCR_CSR3), 0x0102U);
    }
    EXPECT_EQ(csr(SCR_CSR3), 0x0101U);
    set_csr(SCR_CSR3, 253U << 8);
    EXPECT_EQ(csr(SCR_CSR3), 0xfd01U);
    EXPECT_EQ(sp_txrx_id(7), 0);
    EXPECT_EQ(sp_rx_id(9), 0);
    EXPECT_EQ(sp_msg_life(16), 0);
    EXPECT_EQ(csr(SCR_CSR3), 0x0701U);
    set_csr(SCR_CSR8, CSR8_IDMX);
    EXPECT_EQ(csr(SCR_CSR3), 0x09f0U);
    scr_id_mm(&id, &count);
    EXPECT_EQ(id, 7);
    set_csr(SCR_CSR3, 0x1234);
    EXPECT_EQ(csr(SCR_CSR3), 0x1234U);
    EXPECT_EQ(sp_msg_life(256), 0);
    EXPECT_EQ(csr(SCR_CSR3), 0x1200U);
    expect_refused(sp_msg_life(0), "hops");
    expect_refused(sp_msg_life(257), "hops");
    expect_refused(sp_rx_id(256), "no id");
    scr_id_mm(nullptr, &count);
    expect_sentence("null pointer");
}

TEST_F(RegistersOfAPlusCard, what_a_node_cannot_have_is_refused_or_kept) {
    const PlusCard card(0);
    int bits = 5;
    expect_refused(sp_bist_rd(&bits), "no self-test");
    expect_refused(sp_bist_rd(nullptr), "null pointer");
    EXPECT_EQ(bits, 5);
    EXPECT_EQ(sp_set_vp(VP_SET, 0), 0);
    EXPECT_EQ(sp_set_vp(VP_READ, 0), 0);
    EXPECT_EQ(sp_set_vp(VP_RESET, 0), 0);
    expect_refused(sp_set_vp(VP_SET, 1), "no page 1");
    expect_refused(sp_set_vp(4, 0), "VP_SET");
    EXPECT_EQ(sp_set_sm_addr(0xA0C00000), 0);
    EXPECT_EQ(csr(SCR_CSR11), 0xA0C0U);
    EXPECT_EQ(csr(SCR_CSR10), unsigned{CSR10_SMAEN});
    expect_refused(sp_set_sm_addr(1UL << 32), "32 bits");
    EXPECT_EQ(sp_net_to(16), 0);
    EXPECT_EQ(csr(SCR_CSR5), 0U);
    EXPECT_EQ(scr_fswin_mm(), 0);
}

TEST_F(RegistersOfAPlusCard, errors_are_told_in_words) {
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* const file = ::open_memstream(&text, &bytes);
    scr_error_mm(file, CSR1_TXFF | CSR1_INTFF | CSR1_FOBN);
    std::fclose(file);
    EXPECT_STREQ(text,
                 "CSR1: transmit FIFO full\nCSR1: interrupt FIFO full\n"
                 "CSR1: fibre optic bypass not connected\n");
    std::free(text);
    scr_error_mm(nullptr, 1);
    expect_sentence("null pointer");
}

TEST_F(RegistersOfAPlusCard, the_counter_tells_time_and_its_overflow_once) {
    const PlusCard card(0);
    EXPECT_EQ(sp_set_cntr(CNTR_FREERUN), 0);
    EXPECT_EQ(csr(SCR_CSR8) & CSR8_FREE, unsigned{CSR8_FREE});
    // 65536 ticks are 1.75 ms.
    EXPECT_TRUE(comes([] { return (csr(SCR_CSR1) & CSR1_GPCO) != 0; }));
    EXPECT_EQ(sp_set_cntr(CNTR_FREERUN_T2), 0);
    EXPECT_EQ(csr(SCR_CSR9), unsigned{CSR9_TRGC});
    static_cast<void>(csr(SCR_CSR1));
    set_csr(SCR_CSR13, 0xfffe);
    EXPECT_TRUE(comes([] { return csr(SCR_CSR13) < 0xfffe; }));
    EXPECT_NE(csr(SCR_CSR1) & CSR1_GPCO, 0U);
    set_csr(SCR_CSR13, 0);
    EXPECT_EQ(csr(SCR_CSR1) & CSR1_GPCO, 0U);
    EXPECT_EQ(sp_set_cntr(CNTR_TRIGS), 0);
    set_csr(SCR_CSR13, 12);
    EXPECT_EQ(csr(SCR_CSR13), 12U);
    expect_refused(sp_set_cntr(0), "CNTR_ERRORS");
    expect_refused(sp_set_cntr(7), "CNTR_ERRORS");
}

// ---- What needs a ring

/// Each write is counted when it comes; on link ring counts follow in groups.
struct RingOfPlusCards : PlusCards {
    RingOfPlusCards() : PlusCards(LinkKind::udp) {}

    static bool has_arrived() {
        return comes([] { return (csr(SCR_CSR1) & CSR1_TXFNE) == 0; });
    }
};

TEST_F(RingOfPlusCards, the_counter_counts_what_comes_and_how_long_a_round_takes) {
    const PlusCard card(0);
    const Peer peer(1);
    // What the peer writes when it joins comes before this.
    ASSERT_EQ(rmem_write_word(peer, 0, 9), RMEM_OK);
    EXPECT_TRUE(comes([] { return get_base_mem()[0] == 9; }));
    EXPECT_EQ(sp_set_cntr(CNTR_NET_EVENTS), 0);
    for (std::uint32_t i = 1; i <= 5; ++i) ASSERT_EQ(rmem_write_word(peer, 0, i), RMEM_OK);
    EXPECT_TRUE(comes([] { return get_base_mem()[0] == 5; }));
    EXPECT_TRUE(comes([] { return csr(SCR_CSR13) == 5; })) << csr(SCR_CSR13);
    set_csr(SCR_CSR13, 0xffff);
    ASSERT_EQ(rmem_write_word(peer, 0, 6), RMEM_OK);
    EXPECT_TRUE(comes([] { return csr(SCR_CSR13) == 0; }));
    EXPECT_NE(csr(SCR_CSR1) & CSR1_GPCO, 0U);
    EXPECT_EQ(csr(SCR_CSR1) & CSR1_GPCO, 0U) << "it is told once";
    EXPECT_EQ(sp_set_cntr(CNTR_TRANSIT), 0);
    EXPECT_GT(csr(SCR_CSR13), 0U);
}

TEST_F(RingOfPlusCards, write_me_last_shows_an_own_write_when_it_has_come_round) {
    const PlusCard card(0);
    Child stopped([] {
        const PlusCard own(1);
        ::raise(SIGSTOP);
        EXPECT_TRUE(comes([] { return get_base_mem()[0x10] == 10; }));
    });
    stopped.await_stop();
    scr_wml_mm(WRITE_ME_LAST);
    EXPECT_EQ(write_word(0x40, 9), 0);
    EXPECT_EQ(get_base_mem()[0x10], 0U);
    stopped.resume();
    EXPECT_TRUE(comes([] { return get_base_mem()[0x10] == 9; }));
    scr_wml_mm(WRITE_DIRECT);
    EXPECT_EQ(write_word(0x40, 10), 0);
    EXPECT_EQ(get_base_mem()[0x10], 10U);
    EXPECT_EQ(stopped.wait(), 0);
}

TEST_F(RingOfPlusCards, the_data_filter_is_on_when_it_is_for_all_memory) {
    const PlusCard card(0);
    const Peer peer(1);
    const auto sent_of_two = [&](std::uint32_t value) {
        std::uint64_t before = 0, after = 0;
        EXPECT_TRUE(has_arrived());
        EXPECT_EQ(rmem_counter(peer, "writes_applied", &before), RMEM_OK);
        EXPECT_EQ(write_word(0x2040, value), 0);
        EXPECT_EQ(write_word(0x2040, value), 0);
        EXPECT_TRUE(has_arrived());
        EXPECT_EQ(rmem_load(peer, 0x2040), value);
        EXPECT_EQ(rmem_counter(peer, "writes_applied", &after), RMEM_OK);
        return after - before;
    };
    EXPECT_EQ(sent_of_two(1), 2U);
    scr_dfltr_mm(FLT_HGH);
    EXPECT_EQ(sent_of_two(2), 2U);
    scr_dfltr_mm(FLT_ALL);
    EXPECT_EQ(sent_of_two(3), 1U);
    scr_dfltr_mm(FLT_OFF);
    EXPECT_EQ(sent_of_two(4), 2U);
}

/// A message takes so long that the FIFO fills.
struct FullPlusCard : PlusCards {
    FullPlusCard() : PlusCards(LinkKind::ring, 2, {{"RMEM_TIMING", "scramnet-burst"}}) {}
    void SetUp() override {
        if (kChecked) GTEST_SKIP() << "with checks a program writes slower than a card";
    }
};

TEST_F(FullPlusCard, status_latches_a_full_fifo_until_it_is_read) {
    const PlusCard card(0);
    const Peer peer(1);
    EXPECT_EQ(sp_set_cntr(CNTR_ERRORS), 0);
    set_csr(SCR_CSR9, CSR9_TXFF);
    EXPECT_EQ(csr(SCR_CSR1) & CSR1_TXFF, 0U);
    std::array<std::uint32_t, 1024> words{};
    bool was_full = false;
    for (int i = 0; i < 100 && !was_full; ++i) {
        EXPECT_EQ(scr_dma_write(words.data(), 0, sizeof words), 0) << rmem_last_error();
        was_full = (csr(SCR_CSR1) & CSR1_TXFF) != 0;
    }
    EXPECT_TRUE(was_full);
    EXPECT_GT(csr(SCR_CSR13), 0U);
    EXPECT_TRUE(comes([] { return (csr(SCR_CSR1) & CSR1_TXFNE) == 0; }));
    EXPECT_EQ(csr(SCR_CSR1) & (CSR1_TXFF | CSR1_TXF78), 0U);
}

TEST_F(FullPlusCard, without_hold_off_a_transfer_that_finds_no_room_is_refused) {
    const PlusCard card(0);
    Child stopped([] {
        const PlusCard own(1);
        ::raise(SIGSTOP);
    });
    stopped.await_stop();
    set_csr(SCR_CSR8, CSR8_DHLD);
    std::array<std::uint32_t, 1024> words{};
    int result = 0;
    for (int i = 0; i < 10'000 && result == 0; ++i)
        result = scr_dma_write(words.data(), 0, sizeof words);
    expect_refused(result, "hold-off is disabled");
    EXPECT_NE(csr(SCR_CSR1) & CSR1_TXFF, 0U);
    stopped.resume();
    EXPECT_EQ(stopped.wait(), 0);
}

}  // namespace
}  // namespace rmem::test
