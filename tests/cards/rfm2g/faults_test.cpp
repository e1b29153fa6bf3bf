// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// What RFM2g cards tell of a network that does not do its part.

#include "tests/support/rfm2g_cards.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

struct Faults : TwoCards {
    using TwoCards::TwoCards;

    /// A fault is of no node.
    static void expect(RFM2GHANDLE card, RFM2GEVENTTYPE event) {
        const Came came = wait(card, event);
        EXPECT_EQ(came.status, RFM2G_SUCCESS) << rmem_last_error();
        EXPECT_EQ(came.info.NodeId, RFM2G_NODE_UNKNOWN);
    }
    static bool is_raised(RFM2GHANDLE card, RFM2G_UINT32 lier_bit) {
        RFM2G_UINT32 word = 0;
        EXPECT_EQ(RFM2gReadReg(card, RFM2GCTRLREGMEM, rfm2g_lier, 4, &word), RFM2G_SUCCESS);
        return (word & lier_bit) != 0;
    }
};

struct StoppedNode : Faults {
    StoppedNode() : Faults(LinkKind::udp, {{"RMEM_DEAD_TIMEOUT", "3s"}}) {}
};

TEST_F(StoppedNode, breaks_the_ring_until_it_is_dropped_and_is_told_of_it) {
    Child other([] {
        const Card b(1);
        EXPECT_EQ(RFM2gEnableEvent(b, RFM2GEVENT_SYNC_LOSS), RFM2G_SUCCESS);
        EXPECT_EQ(lcsr(b) & RFM2G_LCSR_SNCLOST, 0U);
        EXPECT_TRUE(comes([&] { return has(b, 0, 1); }));
        ::raise(SIGSTOP);
        expect(b, RFM2GEVENT_SYNC_LOSS);
        EXPECT_FALSE(is_raised(b, RFM2G_LIER_SNCLOST));
        EXPECT_EQ(lcsr(b) & RFM2G_LCSR_SNCLOST, RFM2G_LCSR_SNCLOST);
        expect_refused(RFM2gPoke32(b, 0, 2), RFM2G_WRITE_ERROR, "dropped");
        expect_refused(RFM2gSendEvent(b, 0, RFM2GEVENT_INTR1, 2), RFM2G_DRIVER_ERROR, "dropped");
        expect_refused(RFM2gCheckRingCont(b), RFM2G_LINK_TEST_FAIL, "dropped");
    });
    const Card a(0);
    EXPECT_EQ(RFM2gPoke32(a, 0, 1), RFM2G_SUCCESS);
    other.await_stop();
    got(RFM2gClearOwnData, a);
    EXPECT_EQ(RFM2gCheckRingCont(a), RFM2G_LINK_TEST_FAIL);
    EXPECT_EQ(got(RFM2gClearOwnData, a), RFM2G_OFF);
    EXPECT_TRUE(comes([&] { return RFM2gCheckRingCont(a) == RFM2G_SUCCESS; }));
    for (int i = 0; i < 20; ++i) {  // also as soon as it knows that it is alone
        EXPECT_EQ(RFM2gCheckRingCont(a), RFM2G_SUCCESS);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    other.resume();
    EXPECT_EQ(other.wait(), 0);
}

struct LosingFifo : Faults {
    LosingFifo() : Faults(LinkKind::ring, {{"RMEM_TIMING", "scramnet-burst,fifo=lose"}}) {}

    static void lose(RFM2GHANDLE card) {
        std::vector<unsigned char> bytes(16384);
        for (unsigned char i = 1; (lcsr(card) & RFM2G_LCSR_BADDATA) == 0 && i != 0; ++i) {
            bytes.assign(bytes.size(), i);
            EXPECT_EQ(RFM2gWrite(card, 0, bytes.data(), static_cast<RFM2G_UINT32>(bytes.size())),
                      RFM2G_SUCCESS);
        }
    }
};

TEST_F(LosingFifo, is_bad_data_once_until_it_is_enabled_again) {
    const Card a(0), b(1);
    EXPECT_EQ(RFM2gEnableEvent(a, RFM2GEVENT_BAD_DATA), RFM2G_SUCCESS);
    for (RFM2G_UINT32 times = 1; times <= 2; ++times) {
        lose(a);
        expect(a, RFM2GEVENT_BAD_DATA);
        EXPECT_FALSE(is_raised(a, RFM2G_LIER_BAD_DATA));
        EXPECT_EQ(count(a, RFM2GEVENT_BAD_DATA), times);
        EXPECT_EQ(RFM2gClearReg(a, RFM2GCTRLREGMEM, rfm2g_lcsr, 4, RFM2G_LCSR_BADDATA),
                  RFM2G_SUCCESS);
        EXPECT_EQ(lcsr(a) & RFM2G_LCSR_BADDATA, 0U);
        EXPECT_EQ(RFM2gEnableEvent(a, RFM2GEVENT_BAD_DATA), RFM2G_SUCCESS);
    }
}

/// Node 0 is out of the ring for a hundredth of a second, again and again.
struct StrayWrite : Faults {
    StrayWrite()
        : Faults(LinkKind::ring, {{"RMEM_TIMING", "scramnet-burst"}, {"RMEM_FAULTS", bypasses()}}) {
    }

    static std::string bypasses() {
        std::string spec;
        for (int at_ms = 50; at_ms < 10'000; at_ms += 100)
            spec += fmt::format("bypass:node=0,at={}ms,until={}ms;", at_ms, at_ms + 10);
        return spec;
    }
};

TEST_F(StrayWrite, is_a_rogue_packet_where_its_writer_is_gone) {
    const Card a(0), b(1);
    EXPECT_EQ(RFM2gEnableEvent(b, RFM2GEVENT_ROGUE_PKT), RFM2G_SUCCESS);
    // There is always one under way, which its writer does not take off while it is out.
    Came came{};
    std::vector<unsigned char> bytes(4096);
    EXPECT_TRUE(comes([&] {
        ++bytes[0];
        EXPECT_EQ(RFM2gWrite(a, 0, bytes.data(), static_cast<RFM2G_UINT32>(bytes.size())),
                  RFM2G_SUCCESS)
            << rmem_last_error();
        came = wait(b, RFM2GEVENT_ROGUE_PKT, 1);
        return came.status == RFM2G_SUCCESS;
    }));
    EXPECT_EQ(came.info.NodeId, RFM2G_NODE_UNKNOWN);
    EXPECT_GE(count(b, RFM2GEVENT_ROGUE_PKT), 1U);
}

struct FullQueue : Faults {
    FullQueue() : Faults(LinkKind::direct) {}
};

TEST_F(FullQueue, is_a_full_fifo) {
    // 1024 wait at the node while no program of it takes them.
    const Card a(0), b(1);
    for (RFM2G_UINT32 i = 0; i < 1030; ++i)
        EXPECT_EQ(RFM2gSendEvent(a, 1, RFM2GEVENT_INTR1, i), RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gSetReg(b, RFM2GCTRLREGMEM, rfm2g_lcsr, 4, RFM2G_LCSR_LED), RFM2G_SUCCESS);
    EXPECT_EQ(lcsr(b) & RFM2G_LCSR_RCVFULL, RFM2G_LCSR_RCVFULL);
    EXPECT_EQ(RFM2gClearReg(b, RFM2GCTRLREGMEM, rfm2g_lcsr, 4, RFM2G_LCSR_RCVFULL), RFM2G_SUCCESS);
    EXPECT_EQ(lcsr(b) & RFM2G_LCSR_RCVFULL, 0U);
    // The event is there as well, and for a callback, too.
    static std::atomic<int> called;
    called = 0;
    EXPECT_EQ(RFM2gEnableEventCallback(b, RFM2GEVENT_RXFIFO_FULL,
                                       [](RFM2GHANDLE, RFM2GEVENTINFO*) { ++called; }),
              RFM2G_SUCCESS);
    EXPECT_EQ(RFM2gEnableEvent(b, RFM2GEVENT_RXFIFO_FULL), RFM2G_SUCCESS);
    EXPECT_TRUE(comes([] { return called == 1; }));
    EXPECT_TRUE(is_raised(b, RFM2G_LIER_RXFULL));
}

}  // namespace
}  // namespace rmem::test
