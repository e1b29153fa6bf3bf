// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring of SCRAMNet GT cards: unit 0 is node 0, unit 1 node 1, …, all of this host.
///
///     struct Something : GtCards { Something() : GtCards(LinkKind::ring) {} };
///     GtCard a(0), b(1);
///     EXPECT_EQ(scgtSetState(a, SCGT_WRITE_ME_LAST, 1), SCGT_SUCCESS);

#include "cards/scgt/scgtapi.h"
#include "rmem/rmem.h"
#include "tests/support/card_units.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace rmem::test {

inline constexpr uint32 kNoValue = 0xFFFFFFFF;

/// A handle that is closed at the end.
class GtCard {
public:
    explicit GtCard(unsigned unit) {
        EXPECT_EQ(scgtOpen(unit, &handle_), unsigned{SCGT_SUCCESS}) << rmem_last_error();
    }
    ~GtCard() { EXPECT_EQ(scgtClose(&handle_), unsigned{SCGT_SUCCESS}); }
    GtCard(const GtCard&) = delete;
    GtCard& operator=(const GtCard&) = delete;
    operator scgtHandle*() { return &handle_; }
    scgtHandle* operator->() { return &handle_; }

private:
    scgtHandle handle_{};
};

/// One reader of a card's interrupts, from now on.
class GtReader {
public:
    static constexpr uint32 kQueue = 1024;

    explicit GtReader(scgtHandle* card) : card_(card) { EXPECT_EQ(look(), unsigned{SCGT_TIMEOUT}); }

    scgtIntrHandle next = kNoValue;
    std::vector<scgtInterrupt> got;  ///< by the last call

    uint32 look(uint32 room = 2 * kQueue, uint32 timeout_ms = 0) {
        uint32 taken = 99;
        got.resize(room);
        const uint32 result = scgtGetInterrupt(card_, &next, got.data(), room, timeout_ms, &taken);
        EXPECT_LE(taken, room);
        got.resize(taken);
        return result;
    }
    /// Waits for one and expects it to be that.
    void expect(uint32 type, uint32 source, uint32 id, uint32 value) {
        ASSERT_EQ(look(1, kPatienceMs), unsigned{SCGT_SUCCESS}) << rmem_last_error();
        ASSERT_EQ(got.size(), 1U);
        EXPECT_EQ(got[0].type, type);
        EXPECT_EQ(got[0].sourceNodeID, source);
        EXPECT_EQ(got[0].id, id);
        EXPECT_EQ(got[0].val, value);
    }

private:
    scgtHandle* card_;
};

class GtCards : public ::testing::Test {
protected:
    explicit GtCards(LinkKind link, unsigned nodes = 2, const cards::Settings& further = {})
        : units_(link, nodes, further) {}

    static constexpr uint32 kBytes = CardUnits::kBytes;

    static uint32 write_word(scgtHandle* card, uint32 offset, uint32 value,
                             scgtInterrupt* interrupt = nullptr) {
        return scgtWrite(card, offset, &value, 4, 0, nullptr, interrupt);
    }
    static uint32 word(scgtHandle* card, uint32 offset) {
        uint32 value = 0, moved = 0;
        EXPECT_EQ(scgtRead(card, offset, &value, 4, 0, &moved), unsigned{SCGT_SUCCESS})
            << rmem_last_error();
        EXPECT_EQ(moved, 4U);
        return value;
    }
    static uint32 send(scgtHandle* card, uint32 type, uint32 id, uint32 value) {
        scgtInterrupt interrupt{type, 0, id, value, 0};
        return scgtWrite(card, 0, nullptr, 0, 0, nullptr, &interrupt);
    }
    static void expect_done(uint32 found) {
        EXPECT_EQ(found, unsigned{SCGT_SUCCESS})
            << scgtGetErrStr(found) << ": " << rmem_last_error();
    }
    /// The call was refused, and says why.
    static void expect_refused(uint32 found, uint32 result, const char* part) {
        EXPECT_EQ(found, result) << scgtGetErrStr(found) << ": " << rmem_last_error();
        EXPECT_THAT(rmem_last_error(), ::testing::HasSubstr(part));
    }

    const CardUnits units_;
};

using GtCardsOnLinks = OnLinks<GtCards>;

}  // namespace rmem::test
