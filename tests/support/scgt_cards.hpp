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

#include <string>

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

/// Two cards on each link that a host has.
class GtCardsOnLinks : public GtCards, public ::testing::WithParamInterface<LinkKind> {
protected:
    GtCardsOnLinks() : GtCards(GetParam()) {}
};
#define SCGT_ON_ALL_LINKS(Suite)                                                                 \
    INSTANTIATE_TEST_SUITE_P(Links, Suite,                                                       \
                             ::testing::Values(LinkKind::direct, LinkKind::ring, LinkKind::udp), \
                             [](const auto& link) { return name_of(link.param); })

}  // namespace rmem::test
