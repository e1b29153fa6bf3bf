// SPDX-License-Identifier: Apache-2.0

/// The board of an RFM2g card: its settings, the ring's tests, registers.

#include "tests/support/rfm2g_cards.hpp"

namespace rmem::test {
namespace {

class Boards : public CardsOnLinks {
protected:
    const Card a{0}, b{1};

    static RFM2G_UINT32 read(RFM2GHANDLE card, RFM2G_UINT32 offset, RFM2G_UINT32 width = 4,
                             RFM2GREGSETTYPE set = RFM2GCTRLREGMEM) {
        RFM2G_UINT32 value = 0;
        EXPECT_EQ(RFM2gReadReg(card, set, offset, width, &value), RFM2G_SUCCESS)
            << rmem_last_error();
        return value;
    }
    static void write(RFM2GHANDLE card, RFM2G_UINT32 offset, RFM2G_UINT32 value,
                      RFM2G_UINT32 width = 4, RFM2GREGSETTYPE set = RFM2GCTRLREGMEM) {
        EXPECT_EQ(RFM2gWriteReg(card, set, offset, width, value), RFM2G_SUCCESS)
            << rmem_last_error();
    }
};
CARDS_ON_ALL_LINKS(Boards);

TEST_P(Boards, settings_are_kept_and_are_in_the_register) {
    struct Setting {
        RFM2G_STATUS (*set)(RFM2GHANDLE, RFM2G_BOOL);
        RFM2G_STATUS (*get)(RFM2GHANDLE, RFM2G_BOOL*);
        RFM2G_UINT32 bit;
        bool is_bit_off;
    };
    for (const auto& setting :
         {Setting{RFM2gSetLed, RFM2gGetLed, RFM2G_LCSR_LED, false},
          Setting{RFM2gSetDarkOnDark, RFM2gGetDarkOnDark, RFM2G_LCSR_DOD, false},
          Setting{RFM2gSetTransmit, RFM2gGetTransmit, RFM2G_LCSR_XMTDIS, true},
          Setting{RFM2gSetLoopback, RFM2gGetLoopback, RFM2G_LCSR_LOOP, false},
          Setting{RFM2gSetParityEnable, RFM2gGetParityEnable, RFM2G_LCSR_PTY, false}}) {
        EXPECT_EQ(got(setting.get, a), setting.is_bit_off ? RFM2G_ON : RFM2G_OFF);
        for (const bool on : {true, false}) {
            EXPECT_EQ(setting.set(a, on ? RFM2G_ON : RFM2G_OFF), RFM2G_SUCCESS);
            EXPECT_EQ(got(setting.get, a), on ? RFM2G_ON : RFM2G_OFF);
            EXPECT_EQ((lcsr(a) & setting.bit) != 0, on != setting.is_bit_off);
        }
        // And by the register alone.
        EXPECT_EQ(RFM2gSetReg(a, RFM2GCTRLREGMEM, rfm2g_lcsr, 4, setting.bit), RFM2G_SUCCESS);
        EXPECT_EQ(got(setting.get, a), setting.is_bit_off ? RFM2G_OFF : RFM2G_ON);
        EXPECT_EQ(RFM2gClearReg(a, RFM2GCTRLREGMEM, rfm2g_lcsr, 4, setting.bit), RFM2G_SUCCESS);
    }
    EXPECT_EQ(got(RFM2gGetDebugFlags, a), 0U);
    EXPECT_EQ(RFM2gSetDebugFlags(a, RFM2G_DBERROR | RFM2G_DBDMA), RFM2G_SUCCESS);
    EXPECT_EQ(got(RFM2gGetDebugFlags, a), RFM2G_UINT32{RFM2G_DBERROR | RFM2G_DBDMA});
}

TEST_P(Boards, the_ring_is_whole_while_all_take_what_is_sent) {
    EXPECT_EQ(RFM2gCheckRingCont(a), RFM2G_SUCCESS) << rmem_last_error();
    EXPECT_EQ(RFM2gCheckRingCont(b), RFM2G_SUCCESS) << rmem_last_error();
    EXPECT_EQ(RFM2gSetTransmit(a, RFM2G_OFF), RFM2G_SUCCESS);
    expect_refused(RFM2gCheckRingCont(a), RFM2G_LINK_TEST_FAIL, "transmitter");
    EXPECT_EQ(RFM2gSetLoopback(a, RFM2G_ON), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gCheckRingCont(a), RFM2G_SUCCESS);
}

TEST_P(Boards, own_data_is_what_has_come_round_since_it_was_cleared) {
    EXPECT_EQ(got(RFM2gClearOwnData, a), RFM2G_OFF);
    EXPECT_EQ(RFM2gPoke32(a, 0, 1), RFM2G_SUCCESS);
    EXPECT_TRUE(comes([&] { return (lcsr(a) & RFM2G_LCSR_OWNDATA) != 0; }));
    EXPECT_EQ(got(RFM2gClearOwnData, a), RFM2G_ON);
    EXPECT_EQ(got(RFM2gClearOwnData, a), RFM2G_OFF);
    EXPECT_EQ(RFM2gCheckRingCont(a), RFM2G_SUCCESS);
    EXPECT_EQ(lcsr(a) & RFM2G_LCSR_OWNDATA, RFM2G_LCSR_OWNDATA);
    EXPECT_EQ(RFM2gClearReg(a, RFM2GCTRLREGMEM, rfm2g_lcsr, 1, RFM2G_LCSR_OWNDATA), RFM2G_SUCCESS);
    EXPECT_EQ(lcsr(a) & RFM2G_LCSR_OWNDATA, 0U);
}

struct LonelyBoards : CardsOnLinks {};
CARDS_ON_ALL_LINKS(LonelyBoards);

TEST_P(LonelyBoards, have_a_signal_while_another_node_is_there) {
    const Card a(0);
    EXPECT_EQ(lcsr(a) & RFM2G_LCSR_SIGDET, 0U);
    {
        const Card b(1);
        EXPECT_TRUE(comes([&] { return (lcsr(a) & RFM2G_LCSR_SIGDET) != 0; }));
    }
    EXPECT_TRUE(comes([&] { return (lcsr(a) & RFM2G_LCSR_SIGDET) == 0; }));
    EXPECT_EQ(lcsr(a) & RFM2G_LCSR_CFG, 0U);  // 64 MB or less
}

TEST_P(Boards, registers_tell_what_the_board_is) {
    EXPECT_EQ(read(b, rfm2g_bid, 1), 0x65U);
    EXPECT_EQ(read(b, rfm2g_nid, 1), 1U);
    EXPECT_EQ(read(b, rfm2g_brv, 2), 0x658CU);
    EXPECT_EQ(read(b, rfm2g_lisr), RFM2G_LISR_GBLINT);
    EXPECT_EQ(read(b, rfm2g_lier), 0U);
    EXPECT_EQ(read(b, rfmor_las1rr, 4, RFM2GCFGREGMEM), 0xFFFFC000U);
    EXPECT_EQ(read(b, rfmor_las1ba, 4, RFM2GCFGREGMEM), 1U);
    EXPECT_EQ(read(b, rfmor_intcsr, 4, RFM2GCFGREGMEM), 0U);
    write(b, rfm2g_nid, 7, 1);  // is read-only
    EXPECT_EQ(read(b, rfm2g_nid, 1), 1U);
}

TEST_P(Boards, interrupts_are_sent_and_taken_by_registers) {
    // The driver takes none: they wait where the registers are.
    write(a, rfm2g_ntd, 0xABCD);
    EXPECT_EQ(read(a, rfm2g_ntd), 0xABCDU);
    write(a, rfm2g_ntn, 1, 1);
    write(a, rfm2g_nic, RFM2G_NIC_INT1, 1);
    write(a, rfm2g_nic, RFM2G_NIC_INT1 | RFM2G_NIC_GLOBAL, 1);
    write(a, rfm2g_nic, RFM2G_NIC_INITINT, 1);
    write(a, rfm2g_nic, RFM2G_NIC_RSVD, 1);
    ASSERT_TRUE(comes([&] {
        return read(b, rfm2g_lisr) == (RFM2G_LISR_GBLINT | RFM2G_LISR_INT1 | RFM2G_LISR_INITINT);
    }));
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(read(b, rfm2g_isd1), 0xABCDU);
        EXPECT_EQ(read(b, rfm2g_isd1), 0xABCDU);
        EXPECT_EQ(read(b, rfm2g_sid1, 1), 0U);  // takes it
    }
    EXPECT_EQ(read(b, rfm2g_lisr), RFM2G_LISR_GBLINT | RFM2G_LISR_INITINT);
    write(b, rfm2g_lisr, 0);  // forgets no interrupt
    EXPECT_EQ(read(b, rfm2g_lisr), RFM2G_LISR_GBLINT | RFM2G_LISR_INITINT);
    write(b, rfm2g_initn, 0, 1);
    EXPECT_EQ(read(b, rfm2g_lisr), RFM2G_LISR_GBLINT);
    // A latch is forgotten by LISR.
    write(a, rfm2g_nic, RFM2G_NIC_RSTREQ, 1);
    ASSERT_TRUE(comes([&] { return (read(b, rfm2g_lisr) & RFM2G_LISR_RSTREQ) != 0; }));
    EXPECT_EQ(RFM2gClearReg(b, RFM2GCTRLREGMEM, rfm2g_lisr, 4, RFM2G_LISR_RSTREQ), RFM2G_SUCCESS);
    EXPECT_EQ(read(b, rfm2g_lisr), RFM2G_LISR_GBLINT);
    expect_refused(RFM2gWriteReg(b, RFM2GCTRLREGMEM, rfm2g_ntn, 2, 1 | RFM2G_NIC_INT1 << 8),
                   RFM2G_NODE_ID_SELF, "itself");
}

TEST_P(Boards, an_event_is_enabled_by_its_bit_of_the_register) {
    EXPECT_EQ(RFM2gEnableEvent(b, RFM2GEVENT_INTR2), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gEnableEvent(b, RFM2GEVENT_RESET), RFM2G_SUCCESS);
    EXPECT_EQ(read(b, rfm2g_lier), RFM2G_LIER_INT2 | RFM2G_LIER_RSTREQ);
    EXPECT_EQ(read(b, rfmor_intcsr, 4, RFM2GCFGREGMEM),
              RFMOR_INTCSR_ENABLEINT | RFMOR_INTCSR_ENABLELOCINT);
    EXPECT_EQ(RFM2gSendEvent(a, 1, RFM2GEVENT_INTR3, 5), RFM2G_SUCCESS);
    ASSERT_TRUE(comes([&] { return (read(b, rfm2g_lisr) & RFM2G_LISR_INT3) != 0; }));
    EXPECT_EQ(RFM2gSetReg(b, RFM2GCTRLREGMEM, rfm2g_lier, 1, RFM2G_LIER_INT3), RFM2G_SUCCESS);
    const Came came = wait(b, RFM2GEVENT_INTR3, RFM2G_NO_WAIT);
    EXPECT_EQ(came.status, RFM2G_SUCCESS);
    EXPECT_EQ(came.info.ExtendedInfo, 5U);
    write(b, rfm2g_lier, 0);
    EXPECT_EQ(read(b, rfm2g_lier), 0U);
}

TEST_P(Boards, the_memory_is_a_set_of_registers_too) {
    EXPECT_EQ(RFM2gSetPIOByteSwap(a, RFM2G_ON), RFM2G_SUCCESS);  // has no effect on them
    EXPECT_EQ(read(a, rfmor_endian_desc, 4, RFM2GCFGREGMEM), 0x20U);
    write(a, rfmor_endian_desc, 0x80, 1, RFM2GCFGREGMEM);
    EXPECT_EQ(got(RFM2gGetDMAByteSwap, a), RFM2G_ON);
    write(a, 0x103, 0x1122, 2, RFM2GMEM);
    EXPECT_EQ(RFM2gSetReg(a, RFM2GMEM, 0x104, 4, 0xFF00), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gClearReg(a, RFM2GMEM, 0x104, 1, 0x10), RFM2G_SUCCESS);
    ASSERT_TRUE(comes([&] { return has(b, 0x104, 0xFF01); }));
    EXPECT_EQ(read(b, 0x103, 2, RFM2GMEM), 0x0122U);
}

TEST_P(Boards, registers_that_there_are_not_are_refused) {
    RFM2G_UINT32 value = 0;
    struct Access {
        RFM2GREGSETTYPE set;
        RFM2G_UINT32 offset, width;
        RFM2G_STATUS status;
    };
    for (const auto& [set, offset, width, status] :
         {Access{RFM2GCFGREGIO, 0, 4, RFM2G_BAD_PARAMETER_2},
          Access{RFM2GRESERVED1REG, 0, 4, RFM2G_BAD_PARAMETER_2},
          Access{RFM2GCTRLREGMEM, 61, 4, RFM2G_BAD_PARAMETER_3},
          Access{RFM2GCFGREGMEM, 512, 1, RFM2G_BAD_PARAMETER_3},
          Access{RFM2GMEM, 16383, 2, RFM2G_BAD_PARAMETER_3},
          Access{RFM2GCTRLREGMEM, 0xFFFFFFFF, 4, RFM2G_BAD_PARAMETER_3},
          Access{RFM2GCTRLREGMEM, 0, 8, RFM2G_BAD_PARAMETER_4},
          Access{RFM2GCTRLREGMEM, 0, 0, RFM2G_BAD_PARAMETER_4}}) {
        EXPECT_EQ(RFM2gReadReg(a, set, offset, width, &value), status);
        EXPECT_EQ(RFM2gWriteReg(a, set, offset, width, 0), status);
        EXPECT_EQ(RFM2gSetReg(a, set, offset, width, 0), status);
        EXPECT_EQ(RFM2gClearReg(a, set, offset, width, 0), status);
    }
    EXPECT_EQ(read(a, 60, 4), 0U);  // the last that there are
    EXPECT_EQ(read(a, 508, 4, RFM2GCFGREGMEM), 0U);
}

}  // namespace
}  // namespace rmem::test
