// SPDX-License-Identifier: Apache-2.0

/// Opening SCRAMNet GT cards, what a handle tells, and what every call refuses.

#include "tests/support/scgt_cards.hpp"

#include <future>
#include <set>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

struct OpeningGtCards : GtCards {
    OpeningGtCards() : GtCards(LinkKind::direct) {}

    static void expect_not_opened(unsigned unit, uint32 result, const char* part) {
        scgtHandle card{7, 0, nullptr, 0};
        ::testing::internal::CaptureStderr();
        EXPECT_EQ(scgtOpen(unit, &card), result);
        EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(part));
        EXPECT_EQ(card.osHandle, -1);
    }
    /// Every call of a handle that is not open.
    static void expect_closed(scgtHandle* card, const char* part) {
        uint32 value = 5, moved = 0;
        scgtIntrHandle reader = kNoValue;
        scgtInterrupt interrupt{};
        scgtDeviceInfo info{};
        const unsigned bad = SCGT_BAD_PARAMETER;
        expect_refused(scgtWrite(card, 0, &value, 4, 0, &moved, nullptr), bad, part);
        expect_refused(scgtRead(card, 0, &value, 4, 0, &moved), bad, part);
        expect_refused(scgtGetInterrupt(card, &reader, &interrupt, 1, 0, &moved), bad, part);
        expect_refused(scgtGetDeviceInfo(card, &info), bad, part);
        expect_refused(scgtSetState(card, SCGT_WRITE_ME_LAST, 1), bad, part);
        expect_refused(scgtWriteCR(card, 0x10, 0), bad, part);
        expect_refused(scgtWriteNMR(card, 0, 0), bad, part);
        expect_refused(scgtGetStats(card, &value, nullptr, 0, 1), bad, part);
        EXPECT_EQ(scgtGetState(card, SCGT_NODE_ID), kNoValue);
        EXPECT_EQ(scgtReadCR(card, 0), kNoValue);
        EXPECT_EQ(scgtReadNMR(card, 0), kNoValue);
        EXPECT_EQ(scgtMapMem(card), nullptr);
        scgtUnmapMem(card);
    }
};

TEST_F(OpeningGtCards, a_unit_that_is_not_there_says_how_to_start_one) {
    expect_not_opened(3, SCGT_SYSTEM_ERROR, "rmem node --unit 3");
    scgtHandle card;
    expect_refused(scgtOpen(16, &card), SCGT_BAD_PARAMETER, "no unit 16");
    expect_refused(scgtOpen(0, nullptr), SCGT_BAD_PARAMETER, "null pointer");
}

TEST_F(OpeningGtCards, programs_of_a_unit_need_not_be_counted) {
    GtCard card(0);
    Child other([] {
        GtCard another(0);
        expect_done(write_word(another, 16, 5));
    });
    EXPECT_EQ(other.wait(), 0);
    EXPECT_EQ(word(card, 16), 5U);
}

TEST_F(OpeningGtCards, a_handle_tells_what_the_card_is) {
    GtCard card(1);
    EXPECT_EQ(card->unitNum, 1U);
    EXPECT_EQ(card->memMapPtr, nullptr);
    scgtDeviceInfo info{};
    expect_done(scgtGetDeviceInfo(card, &info));
    EXPECT_THAT(info.driverRevisionStr, HasSubstr("rmem "));
    EXPECT_STREQ(info.boardLocationStr, "node 1 of 2");
    EXPECT_EQ(info.unitNum, 1U);
    EXPECT_EQ(info.popMemSize, kBytes);
    EXPECT_EQ(info.mappedMemSize, kBytes);
    EXPECT_EQ(info.numLinks, 2U);
    EXPECT_EQ(info.revisionID, scgtReadCR(card, 0) >> 16);
    expect_refused(scgtGetDeviceInfo(card, nullptr), SCGT_BAD_PARAMETER, "null pointer");
}

TEST_F(OpeningGtCards, handles_of_one_unit_are_one_card) {
    GtCard first(0), second(0);
    EXPECT_NE(first->osHandle, second->osHandle);
    expect_done(scgtSetState(first, SCGT_SPY_NODE_ID, 1));
    EXPECT_EQ(scgtGetState(second, SCGT_SPY_NODE_ID), 1U);
    expect_done(scgtClose(first));
    EXPECT_EQ(scgtGetState(second, SCGT_SPY_NODE_ID), 1U);
}

TEST_F(OpeningGtCards, a_handle_that_is_not_open_is_refused_by_every_call) {
    scgtHandle never{};
    expect_closed(&never, "not open");
    expect_refused(scgtClose(&never), SCGT_BAD_PARAMETER, "not open");
    expect_closed(nullptr, "null pointer");
    expect_refused(scgtClose(nullptr), SCGT_BAD_PARAMETER, "null pointer");

    scgtHandle card;
    expect_done(scgtOpen(0, &card));
    scgtHandle copy = card;
    expect_done(scgtClose(&card));
    EXPECT_EQ(card.osHandle, -1);
    expect_closed(&card, "not open");
    expect_done(scgtClose(&card));
    const GtCard next(0);
    expect_closed(&copy, "not open");
}

TEST_F(OpeningGtCards, a_close_ends_what_threads_wait_for_by_that_handle_and_no_other) {
    scgtHandle first, second;
    expect_done(scgtOpen(0, &first));
    expect_done(scgtOpen(0, &second));
    const auto reader = [](const scgtHandle& card) {
        return std::async(std::launch::async, [own = card]() mutable {
            scgtIntrHandle next = kNoValue;
            scgtInterrupt interrupt;
            uint32 taken = 0;
            expect_refused(scgtGetInterrupt(&own, &next, &interrupt, 1, kNoValue, &taken),
                           SCGT_BAD_PARAMETER, "closed");
        });
    };
    auto of_first = reader(first), of_second = reader(second);
    const auto waiting = [&](uint32 readers) {
        uint32 found = 0;
        expect_done(scgtGetStats(&second, &found, nullptr, 7, 1));  // getIntrWaitCount
        return found == readers;
    };
    EXPECT_TRUE(comes([&] { return waiting(2); }));
    expect_done(scgtClose(&first));
    of_first.wait();
    EXPECT_TRUE(comes([&] { return waiting(1); }));
    expect_done(scgtClose(&second));
    of_second.wait();
    GtCard next(0);  // its rank is free as soon as it is closed
    expect_done(write_word(next, 0x40, 3));
}

TEST_F(OpeningGtCards, each_code_has_a_text_of_its_own) {
    std::set<std::string> texts;
    for (uint32 code = SCGT_SUCCESS; code <= SCGT_HARDWARE_ERROR + 1; ++code)
        EXPECT_TRUE(texts.insert(scgtGetErrStr(code)).second) << code;
    EXPECT_STREQ(scgtGetErrStr(kNoValue), scgtGetErrStr(SCGT_HARDWARE_ERROR + 1));
    EXPECT_STREQ(scgtGetApiRevStr(), scgtapiRevisionStr);
    EXPECT_THAT(scgtGetApiRevStr(), HasSubstr("1.0"));
}

}  // namespace
}  // namespace rmem::test
