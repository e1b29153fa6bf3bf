// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// What programs of SCRAMNet GT cards are told when a node falls silent.

#include "tests/support/scgt_cards.hpp"

#include <csignal>
#include <vector>

namespace rmem::test {
namespace {

/// A ring on whose link the others drop a node that is silent for a while.
struct GtDroppingRing : GtCards {
    GtDroppingRing() : GtCards(LinkKind::udp, 2, {{"RMEM_DEAD_TIMEOUT", "1s"}}) {}
};

TEST_F(GtDroppingRing, a_node_that_was_dropped_has_no_link_and_says_so) {
    Child other([] {
        GtCard b(1);
        expect_done(scgtSetState(b, SCGT_LINK_ERR_INT_ENABLE, 1));
        GtReader reader(b);
        EXPECT_TRUE(comes([&] { return word(b, 0) == 1; }));
        EXPECT_EQ(scgtGetState(b, SCGT_LINK_UP), 1U);
        ::raise(SIGSTOP);
        reader.expect(SCGT_ERROR_INTR, 0, 0, SCGT_LINK_ERROR);
        EXPECT_EQ(scgtGetState(b, SCGT_LINK_UP), 0U);
        EXPECT_EQ(scgtGetState(b, SCGT_LASER_0_SIGNAL_DET), 0U);
        EXPECT_EQ(scgtReadCR(b, 0x84), 1U);
        expect_refused(write_word(b, 0, 2), SCGT_LINK_ERROR, "dropped this node");
    });
    GtCard a(0);
    expect_done(write_word(a, 0, 1));
    other.await_stop();
    EXPECT_TRUE(comes([&] { return scgtGetState(a, SCGT_RING_SIZE) == 1; }));
    EXPECT_EQ(scgtGetState(a, SCGT_UPSTREAM_NODE_ID), 0U);
    expect_done(write_word(a, 0, 2));
    other.resume();
    EXPECT_EQ(other.wait(), 0);
}

/// A ring on whose link a node that is stopped is waited for.
struct GtPatientRing : GtCards {
    GtPatientRing() : GtCards(LinkKind::udp, 2, {{"RMEM_DEAD_TIMEOUT", "60s"}}) {}
};

TEST_F(GtPatientRing, a_write_that_finds_no_room_for_long_says_how_far_it_came) {
    Child other([] {
        GtCard b(1);
        expect_done(write_word(b, 0, 1));
        EXPECT_TRUE(comes([&] { return word(b, 4) == 1; }));
        ::raise(SIGSTOP);
    });
    GtCard a(0);
    EXPECT_TRUE(comes([&] { return word(a, 0) == 1; }));
    expect_done(write_word(a, 4, 1));
    other.await_stop();
    std::vector<uint32> words(kBytes / 4);
    uint32 moved = kBytes, result = SCGT_SUCCESS;
    for (unsigned i = 0; i < 100'000 && result == SCGT_SUCCESS; ++i)
        result = scgtWrite(a, 0, words.data(), kBytes, 0, &moved, nullptr);
    expect_refused(result, SCGT_TIMEOUT, "no room");
    EXPECT_LT(moved, kBytes);
    EXPECT_EQ(moved % 4, 0U);
    other.resume();
    EXPECT_EQ(other.wait(), 0);
    expect_done(write_word(a, 0, 2));
}

}  // namespace
}  // namespace rmem::test
