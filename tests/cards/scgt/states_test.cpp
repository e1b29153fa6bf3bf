// SPDX-License-Identifier: Apache-2.0

/// The states, registers and statistics of SCRAMNet GT cards: what is set, and what is measured.

#include "tests/support/scgt_cards.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using namespace std::string_view_literals;

constexpr uint32 kStates = SCGT_READ_BYPASS_ENABLE + 1;

struct GtStates : GtCards {
    GtStates() : GtCards(LinkKind::direct, 3) {}

    static uint32 state(scgtHandle* card, uint32 id) { return scgtGetState(card, id); }
};

TEST_F(GtStates, each_is_there_and_begins_as_a_configured_card_has_it) {
    GtCard card(1);
    constexpr uint32 kMeasured = 0xFFFFFFFE;
    constexpr std::array<uint32, kStates> kAtFirst = {
        1, 0, 0, 0, 0, 1, 0xFFFFFFFF, 0, 1, 1, kMeasured, kMeasured, kMeasured, kMeasured,
        1, 1, 1, 1, 1, 1, 1,          1, 1, 1, 0,         0,         0,         1};
    for (uint32 id = 0; id < kStates; ++id) {
        if (kAtFirst[id] == kMeasured) continue;
        EXPECT_EQ(state(card, id), kAtFirst[id]) << "state " << id;
    }
    EXPECT_EQ(state(card, kStates), kNoValue);
    EXPECT_THAT(rmem_last_error(), HasSubstr("no state 28"));
    expect_refused(scgtSetState(card, kStates, 1), SCGT_BAD_PARAMETER, "no state 28");
}

TEST_F(GtStates, what_is_set_is_kept_and_is_a_field_of_its_register) {
    GtCard card(2);
    struct Setting {
        uint32 id, value, offset, mask;
    };
    for (const Setting& s :
         {Setting{SCGT_ACTIVE_LINK, 1, 0x10, 0x10}, Setting{SCGT_WRITE_ME_LAST, 1, 0x10, 0x100000},
          Setting{SCGT_UNICAST_INT_MASK, 0, 0x1C, 0x1},
          Setting{SCGT_BROADCAST_INT_MASK, 0xF0, 0x18, 0xFFFFFFFF},
          Setting{SCGT_INT_SELF_ENABLE, 1, 0x10, 0x200000},
          Setting{SCGT_SPY_NODE_ID, 255, 0x10, 0xFF000000},
          Setting{SCGT_TRANSMIT_ENABLE, 0, 0x10, 0x10000},
          Setting{SCGT_LASER_0_ENABLE, 0, 0x10, 0x1}, Setting{SCGT_LASER_1_ENABLE, 0, 0x10, 0x2},
          Setting{SCGT_D64_ENABLE, 0, 0x08, 0x10},
          Setting{SCGT_LINK_ERR_INT_ENABLE, 1, 0x0C, 0x40000},
          Setting{SCGT_READ_BYPASS_ENABLE, 0, 0x20, 0x200}}) {
        const uint32 before = scgtReadCR(card, s.offset);
        expect_done(scgtSetState(card, s.id, s.value));
        EXPECT_EQ(state(card, s.id), s.value) << "state " << s.id;
        const uint32 after = scgtReadCR(card, s.offset + 3);
        EXPECT_NE(after, before) << "state " << s.id;
        EXPECT_EQ((after ^ before) & ~s.mask, 0U) << "state " << s.id;
        // Back by the register.
        expect_done(scgtWriteCR(card, s.offset, before));
        EXPECT_EQ(scgtReadCR(card, s.offset), before);
        expect_done(scgtSetState(card, s.id, s.value));
    }
    // Of a flag any bit counts, of a number the low ones.
    for (const uint32 id : {SCGT_LASER_0_ENABLE + 0U, SCGT_TRANSMIT_ENABLE + 0U,
                            SCGT_D64_ENABLE + 0U, SCGT_WRITE_ME_LAST + 0U}) {
        expect_done(scgtSetState(card, id, 6));
        EXPECT_EQ(state(card, id), 1U) << "state " << id;
    }
    for (const uint32 id : {SCGT_ACTIVE_LINK + 0U, SCGT_UNICAST_INT_MASK + 0U}) {
        expect_done(scgtSetState(card, id, 6));
        EXPECT_EQ(state(card, id), 0U) << "state " << id;
    }
    // A card's reset is the first settings.
    expect_done(scgtWriteCR(card, 0x04, scgtReadCR(card, 0x04) | 0x1000));
    EXPECT_EQ(state(card, SCGT_TRANSMIT_ENABLE), 1U);
    EXPECT_EQ(state(card, SCGT_BROADCAST_INT_MASK), 0xFFFFFFFF);
    EXPECT_EQ(state(card, SCGT_SPY_NODE_ID), 2U);
}

TEST_F(GtStates, an_id_that_no_node_has_is_a_name_of_the_program) {
    GtCard card(0), other(1);
    expect_done(scgtSetState(card, SCGT_NODE_ID, 10));
    EXPECT_EQ(scgtGetState(card, SCGT_NODE_ID), 10U);
    EXPECT_EQ(scgtReadCR(card, 0x10) >> 8 & 0xFF, 10U);
    EXPECT_EQ(scgtGetState(other, SCGT_UPSTREAM_NODE_ID), 0U) << "to others it is its number";
    expect_done(scgtSetState(card, SCGT_WRITE_ME_LAST, 1));
    EXPECT_EQ(scgtGetState(card, SCGT_NODE_ID), 10U);
    expect_done(scgtSetState(card, SCGT_NODE_ID, 0));
    EXPECT_EQ(scgtGetState(card, SCGT_NODE_ID), 0U);
}

TEST_F(GtStates, what_a_node_cannot_have_is_refused_and_changes_nothing) {
    GtCard card(0);
    const uint32 before = scgtReadCR(card, 0x10);
    const unsigned unsupported = SCGT_CALL_UNSUPPORTED;
    expect_refused(scgtSetState(card, SCGT_NODE_ID, 1), unsupported, "node 0");
    expect_refused(scgtSetState(card, SCGT_EWRAP, 1), unsupported, "itself alone");
    expect_refused(scgtSetState(card, SCGT_RECEIVE_ENABLE, 0), unsupported, "keep out");
    expect_refused(scgtSetState(card, SCGT_RETRANSMIT_ENABLE, 0), unsupported, "passes");
    expect_refused(scgtSetState(card, SCGT_BYTE_SWAP_ENABLE, 1), unsupported, "swap");
    expect_refused(scgtSetState(card, SCGT_WORD_SWAP_ENABLE, 1), unsupported, "swap");
    expect_refused(scgtWriteCR(card, 0x10, before ^ 0x130000), unsupported, "keep out");
    EXPECT_EQ(scgtReadCR(card, 0x10), before);
    // To what they are they can be set.
    for (const uint32 id : {SCGT_NODE_ID + 0U, SCGT_EWRAP + 0U, SCGT_RECEIVE_ENABLE + 0U,
                            SCGT_RETRANSMIT_ENABLE + 0U, SCGT_BYTE_SWAP_ENABLE + 0U})
        expect_done(scgtSetState(card, id, state(card, id)));
    // What is measured stays as it is.
    for (const uint32 id : {SCGT_RING_SIZE + 0U, SCGT_UPSTREAM_NODE_ID + 0U, SCGT_LINK_UP + 0U,
                            SCGT_LASER_0_SIGNAL_DET + 0U, SCGT_LASER_1_SIGNAL_DET + 0U})
        expect_refused(scgtSetState(card, id, 77), SCGT_BAD_PARAMETER, "measured");
    expect_done(scgtSetState(card, SCGT_NUM_LINK_ERRS, 77));
    EXPECT_EQ(state(card, SCGT_NUM_LINK_ERRS), 0U);
}

TEST_F(GtStates, registers_that_are_not_here_are_refused) {
    GtCard card(0);
    EXPECT_EQ(scgtReadCR(card, 0xC0), kNoValue);
    EXPECT_THAT(rmem_last_error(), HasSubstr("0xc0 cannot be read"));
    expect_refused(scgtWriteCR(card, 0xC0, 1), SCGT_CALL_UNSUPPORTED, "0xc0 cannot be written");
    EXPECT_EQ(scgtReadCR(card, 0x100), kNoValue);
    expect_refused(scgtWriteCR(card, 0x100, 1), SCGT_BAD_PARAMETER, "beyond");
    EXPECT_EQ(scgtReadNMR(card, 0x1000), kNoValue);
    EXPECT_EQ(scgtReadNMR(card, 0x2000), kNoValue);
    expect_refused(scgtWriteNMR(card, 0x800, 1), SCGT_CALL_UNSUPPORTED, "cannot be written");
    expect_refused(scgtWriteNMR(card, 0x2000, 1), SCGT_BAD_PARAMETER, "beyond");
    EXPECT_EQ(scgtReadCR(card, 0x04) & 0xF, 0xAU);
    EXPECT_EQ(scgtReadCR(card, 0x00) & 0xFFFF, 0x2B00U);  // GT200, 66 MHz, 256 KB
}

TEST_F(GtStates, timers_go_on_at_the_rates_of_a_gt200) {
    GtCard card(0);
    const auto begin = std::chrono::steady_clock::now();
    expect_done(scgtWriteCR(card, 0x44, 0));
    expect_done(scgtSetState(card, SCGT_NET_TIMER_VAL, 0));
    EXPECT_TRUE(comes([&] { return state(card, SCGT_NET_TIMER_VAL) > 125'000; }));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1));
    EXPECT_GT(scgtReadCR(card, 0x40), 125'000U);
    EXPECT_GT(scgtReadCR(card, 0x44), 60'000U);
}

TEST_F(GtStates, traffic_is_counted_and_counts_go_on_from_what_is_written_to_them) {
    GtCard card(0);
    std::array<uint32, 100> words{};
    expect_done(scgtSetState(card, SCGT_SM_TRAFFIC_CNT, 1000));
    expect_done(scgtSetState(card, SCGT_SPY_SM_TRAFFIC_CNT, 0));
    expect_done(scgtWrite(card, 0, words.data(), 400, 0, nullptr, nullptr));
    EXPECT_EQ(state(card, SCGT_SM_TRAFFIC_CNT), 1100U);
    EXPECT_EQ(scgtReadCR(card, 0x4C), 1100U);
    EXPECT_EQ(state(card, SCGT_SPY_SM_TRAFFIC_CNT), 100U);
    // Of another node of more than two it is not known here, of one that is none it is nothing.
    expect_done(scgtSetState(card, SCGT_SPY_NODE_ID, 1));
    EXPECT_EQ(state(card, SCGT_SPY_SM_TRAFFIC_CNT), kNoValue);
    EXPECT_THAT(rmem_last_error(), HasSubstr("spy on node 0"));
    expect_refused(scgtSetState(card, SCGT_SPY_SM_TRAFFIC_CNT, 0), SCGT_CALL_UNSUPPORTED, "spy");
    expect_done(scgtSetState(card, SCGT_SPY_NODE_ID, 9));
    expect_done(scgtSetState(card, SCGT_SPY_SM_TRAFFIC_CNT, 5));
    EXPECT_EQ(state(card, SCGT_SPY_SM_TRAFFIC_CNT), 5U);

    GtCard other(1);
    const GtReader reader(other);
    for (unsigned i = 0; i < 3; ++i) expect_done(send(card, SCGT_UNICAST_INTR, 1, i));
    EXPECT_EQ(scgtReadCR(card, 0x50), 3U);
    EXPECT_TRUE(comes([&] { return scgtReadCR(other, 0x58) == 3; }));
    EXPECT_EQ(scgtReadCR(other, 0x50), 3U);
    EXPECT_EQ(scgtReadCR(other, 0x5C), 3U);
}

TEST_F(GtStates, statistics_have_names_that_fit_their_numbers) {
    GtCard card(0);
    std::array<uint32, 2> sizes{};
    expect_done(scgtGetStats(card, sizes.data(), nullptr, 0, 2));
    ASSERT_GT(sizes[0], 8U);
    std::string all(sizes[1], '#');
    expect_done(scgtGetStats(card, nullptr, all.data(), 0, sizes[0]));
    EXPECT_EQ(all.find('\0'), sizes[1] - 1);
    EXPECT_THAT(all, StartsWith("nStats,namesLen,intr,tc0Intr,tc1Intr,netIntr,linkErrIntr,"));
    std::vector<std::string> names;
    for (std::size_t at = 0; at < all.size(); at = all.find_first_of(",\0"sv, at) + 1)
        names.push_back(all.substr(at, all.find_first_of(",\0"sv, at) - at));
    ASSERT_EQ(names.size(), sizes[0]);
    const auto value = [&](std::string_view name) {
        for (uint32 i = 0; i < names.size(); ++i) {
            uint32 number = 0;
            std::string found(100, '#');
            if (names[i] != name) continue;
            expect_done(scgtGetStats(card, &number, found.data(), i, 1));
            EXPECT_STREQ(found.c_str(), names[i].c_str());
            return number;
        }
        ADD_FAILURE() << name;
        return kNoValue;
    };
    const uint32 sent = value("writes_sent");
    expect_done(write_word(card, 0, 1));
    word(card, 0);
    word(card, 0);
    EXPECT_EQ(value("tc0Intr"), 1U);
    EXPECT_EQ(value("tc1Intr"), 2U);
    EXPECT_EQ(value("writes_sent"), sent + 1);
    expect_done(scgtSetState(card, SCGT_INT_SELF_ENABLE, 1));
    expect_done(send(card, SCGT_UNICAST_INTR, 0, 0));
    EXPECT_EQ(value("intr"), 1U);
    EXPECT_EQ(value("netIntr"), 1U);

    uint32 number = 0;
    expect_done(scgtGetStats(card, nullptr, nullptr, sizes[0], 0));
    const unsigned bad = SCGT_BAD_PARAMETER;
    expect_refused(scgtGetStats(card, &number, nullptr, sizes[0], 1), bad, "more than");
    expect_refused(scgtGetStats(card, &number, nullptr, 1, kNoValue), bad, "more than");
    expect_refused(scgtGetStats(card, &number, nullptr, kNoValue, 2), bad, "more than");
}

// ---- The ring

class GtRings : public GtCards, public ::testing::WithParamInterface<LinkKind> {
protected:
    GtRings() : GtCards(GetParam(), 3) {}
};
CARDS_ON_ALL_LINKS(GtRings);

TEST_P(GtRings, a_card_knows_who_is_there_and_in_which_order) {
    constexpr uint32 kThere = 0x877B0000;  // valid, up, both signals and lasers, the switches on
    GtCard first(0), last(2);
    EXPECT_TRUE(comes([&] { return scgtGetState(first, SCGT_RING_SIZE) == 2; }));
    EXPECT_TRUE(comes([&] { return scgtGetState(last, SCGT_RING_SIZE) == 2; }));
    EXPECT_EQ(scgtGetState(first, SCGT_UPSTREAM_NODE_ID), 2U);
    EXPECT_EQ(scgtGetState(last, SCGT_UPSTREAM_NODE_ID), 0U);
    EXPECT_EQ(scgtGetState(first, SCGT_LINK_UP), 1U);
    expect_done(scgtSetState(first, SCGT_WRITE_ME_LAST, 1));
    expect_done(scgtWriteNMR(first, 0, 0));  // as who looks clears the table before
    EXPECT_EQ(scgtReadNMR(first, 0), kThere | 0x0002U);
    EXPECT_EQ(scgtReadNMR(first, 4), kThere | 0x800200U);
    EXPECT_EQ(scgtReadNMR(first, 8), 0U);
    EXPECT_EQ(scgtReadNMR(first, 255 * 4), 0U);
    GtCard second(1);
    EXPECT_TRUE(comes([&] { return scgtGetState(first, SCGT_RING_SIZE) == 3; }));
    EXPECT_TRUE(comes([&] { return scgtGetState(last, SCGT_UPSTREAM_NODE_ID) == 1; }));
    EXPECT_EQ(scgtReadNMR(first, 0) & 0xFFFF, 0x0102U);
    EXPECT_EQ(scgtReadNMR(first, 4) & 0xFFFF, 0x0001U);
    EXPECT_EQ(scgtReadNMR(first, 8) & 0xFFFF, 0x0200U);
}

TEST_P(GtRings, a_message_round_the_ring_is_timed) {
    GtCard first(0), second(1), last(2);
    EXPECT_TRUE(comes([&] { return scgtGetState(first, SCGT_LATENCY_TIMER_VAL) > 0; }));
    expect_done(scgtSetState(first, SCGT_LATENCY_TIMER_VAL, 0));
    // On a ring of one host it is less than a second, 125 million ticks.
    EXPECT_TRUE(comes([&] { return scgtGetState(first, SCGT_LATENCY_TIMER_VAL) < 125'000'000; }));
}

struct GtOfTwo : GtCardsOnLinks {};
CARDS_ON_ALL_LINKS(GtOfTwo);

TEST_P(GtOfTwo, a_card_spies_on_the_other_where_what_comes_is_counted) {
    GtCard a(0), b(1);
    std::array<uint32, 50> words{};
    expect_done(scgtSetState(b, SCGT_SPY_NODE_ID, 0));
    expect_done(scgtSetState(b, SCGT_SPY_SM_TRAFFIC_CNT, 0));
    const auto spied = [&] { return scgtGetState(b, SCGT_SPY_SM_TRAFFIC_CNT); };
    uint32 sent = 0;
    const auto send_some = [&] {
        sent += 50;
        words[49] = sent;
        expect_done(scgtWrite(a, 0, words.data(), 200, 0, nullptr, nullptr));
        EXPECT_TRUE(comes([&] { return word(b, 196) == sent; }));
    };
    send_some();
    if (GetParam() == LinkKind::direct) {
        EXPECT_EQ(spied(), 0U);  // what comes is there without anybody's doing
        return;
    }
    // On link ring counts follow in groups.
    EXPECT_TRUE(comes([&] {
        send_some();
        return spied() >= 50;
    }));
    EXPECT_LE(spied(), sent);
}

/// A ring whose cable from node 0 to node 1 is cut.
struct GtCutRing : GtCards {
    GtCutRing()
        : GtCards(LinkKind::ring, 2,
                  {{"RMEM_TIMING", "gt200"}, {"RMEM_FAULTS", "cut:cable=0,ring=both,at=0ms"}}) {}
};

TEST_F(GtCutRing, errors_of_the_link_are_counted_and_interrupt_where_that_is_enabled) {
    GtCard a(0), b(1);
    GtReader reader(b);
    expect_done(write_word(a, 0, 1));
    EXPECT_TRUE(comes([&] { return word(b, 0) == 0 && scgtReadCR(b, 0x90) == 1; }));
    EXPECT_TRUE(comes([&] { return scgtReadCR(b, 0x84) == 1; }));
    EXPECT_EQ(reader.look(), unsigned{SCGT_TIMEOUT});  // it is not enabled
    EXPECT_EQ(scgtGetState(b, SCGT_NUM_LINK_ERRS), scgtReadCR(b, 0x80));
    EXPECT_GE(scgtReadCR(b, 0x80), 2U);
    EXPECT_EQ(scgtReadCR(b, 0x14) & 0xFF, 0x09U);
    expect_done(scgtWriteCR(b, 0x14, 0x01));
    EXPECT_EQ(scgtReadCR(b, 0x14) & 0xFF, 0x08U);
    EXPECT_EQ(scgtReadCR(b, 0x88), 0U);

    expect_done(scgtSetState(b, SCGT_LINK_ERR_INT_ENABLE, 1));
    EXPECT_EQ(reader.look(), unsigned{SCGT_TIMEOUT});  // those before do not count
    expect_done(write_word(a, 0, 2));
    reader.expect(SCGT_ERROR_INTR, 0, 0, SCGT_LINK_ERROR);
    EXPECT_EQ(reader.look(), unsigned{SCGT_TIMEOUT});
    EXPECT_EQ(scgtReadCR(b, 0x58), 0U);
    EXPECT_EQ(scgtReadCR(b, 0x5C), 1U);
}

}  // namespace
}  // namespace rmem::test
