// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring of two RFM2g cards: unit 0 is node 0, unit 1 node 1, both of this host.
///
///     struct Something : TwoCards { Something() : TwoCards(LinkKind::ring) {} };
///     const Card a(0), b(1);
///     EXPECT_EQ(RFM2gPoke32(a, 0x100, 42), RFM2G_SUCCESS);

#include "cards/rfm2g/rfm2g_api.h"
#include "cards/rfm2g/rfm2g_regs.h"
#include "tests/support/card_units.hpp"

#include <gmock/gmock.h>

#include <string>

namespace rmem::test {

/// A handle that is closed at the end.
class Card {
public:
    explicit Card(unsigned unit) {
        std::string path = "/dev/rfm2g" + std::to_string(unit);
        EXPECT_EQ(RFM2gOpen(path.data(), &handle_), RFM2G_SUCCESS) << rmem_last_error();
    }
    ~Card() {
        if (handle_ == nullptr) return;  // has failed already
        EXPECT_EQ(RFM2gClose(&handle_), RFM2G_SUCCESS);
    }
    Card(const Card&) = delete;
    Card& operator=(const Card&) = delete;
    operator RFM2GHANDLE() const { return handle_; }

private:
    RFM2GHANDLE handle_ = nullptr;
};

class TwoCards : public ::testing::Test {
protected:
    /// What `settings` says comes before what is here.
    explicit TwoCards(LinkKind link, const cards::Settings& settings = {})
        : units_(link, 2, settings) {}

    static bool has(RFM2GHANDLE card, RFM2G_UINT32 offset, RFM2G_UINT32 value) {
        RFM2G_UINT32 found = 0;
        EXPECT_EQ(RFM2gPeek32(card, offset, &found), RFM2G_SUCCESS) << rmem_last_error();
        return found == value;
    }
    /// What the call stores.
    template <class Value>
    static Value got(RFM2G_STATUS (*call)(RFM2GHANDLE, Value*), RFM2GHANDLE card) {
        Value value{};
        EXPECT_EQ(call(card, &value), RFM2G_SUCCESS) << rmem_last_error();
        return value;
    }
    /// What came; the status tells whether.
    struct Came {
        RFM2G_STATUS status;
        RFM2GEVENTINFO info;
    };
    static Came wait(RFM2GHANDLE card, RFM2GEVENTTYPE event, unsigned timeout = kPatienceMs) {
        Came came{RFM2G_SUCCESS, {0, event, timeout, 0, nullptr}};
        came.status = RFM2gWaitForEvent(card, &came.info);
        return came;
    }
    static RFM2G_UINT32 count(RFM2GHANDLE card, RFM2GEVENTTYPE event) {
        RFM2G_UINT32 found = 0;
        EXPECT_EQ(RFM2gGetEventCount(card, event, &found), RFM2G_SUCCESS);
        return found;
    }
    static RFM2G_UINT32 lcsr(RFM2GHANDLE card) {
        RFM2G_UINT32 word = 0;
        EXPECT_EQ(RFM2gReadReg(card, RFM2GCTRLREGMEM, rfm2g_lcsr, 4, &word), RFM2G_SUCCESS);
        return word;
    }
    /// The call was refused, and says why.
    static void expect_refused(RFM2G_STATUS found, RFM2G_STATUS status, const char* part) {
        EXPECT_EQ(found, status) << RFM2gErrorMsg(found) << ": " << rmem_last_error();
        EXPECT_THAT(rmem_last_error(), ::testing::HasSubstr(part));
    }

    const CardUnits units_;
};

using CardsOnLinks = OnLinks<TwoCards>;

}  // namespace rmem::test
