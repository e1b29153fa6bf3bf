// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring of two RFM2g cards: unit 0 is node 0, unit 1 node 1, both of this host.
///
///     struct Something : TwoCards { Something() : TwoCards(LinkKind::ring) {} };
///     const Card a(0), b(1);
///     EXPECT_EQ(RFM2gPoke32(a, 0x100, 42), RFM2G_SUCCESS);

#include "cards/rfm2g/rfm2g_api.h"
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
    /// The call was refused, and says why.
    static void expect_refused(RFM2G_STATUS found, RFM2G_STATUS status, const char* part) {
        EXPECT_EQ(found, status) << RFM2gErrorMsg(found) << ": " << rmem_last_error();
        EXPECT_THAT(rmem_last_error(), ::testing::HasSubstr(part));
    }

    const CardUnits units_;
};

/// The same on each link that a host has.
class CardsOnLinks : public TwoCards, public ::testing::WithParamInterface<LinkKind> {
protected:
    CardsOnLinks() : TwoCards(GetParam()) {}
};
#define RFM2G_ON_ALL_LINKS(Suite)                                                                \
    INSTANTIATE_TEST_SUITE_P(Links, Suite,                                                       \
                             ::testing::Values(LinkKind::direct, LinkKind::ring, LinkKind::udp), \
                             [](const auto& link) { return name_of(link.param); })

}  // namespace rmem::test
