// SPDX-License-Identifier: Apache-2.0
#include "simulator/hunt/scenario.hpp"

#include <gtest/gtest.h>

#include "rmem/error.hpp"

namespace simulator {
namespace {

TEST(Scenarios, have_as_many_messages_and_faults_as_promised) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        const Scenario scenario = Scenario::of_seed(seed);
        EXPECT_GE(scenario.messages, 2000U);
        EXPECT_GE(scenario.faults.size(), 20U);
        for (const Fault& fault : scenario.faults) {
            EXPECT_LE(fault.at_message, scenario.messages);
            EXPECT_LT(fault.target, Scenario::kRanks);
        }
    }
}

TEST(Scenarios, of_a_few_hundred_seeds_have_every_kind_of_fault) {
    std::array<unsigned, kFaultKinds> met{};
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        for (const Fault& fault : Scenario::of_seed(seed).faults) {
            ++met.at(static_cast<std::size_t>(fault.kind));
        }
    }
    for (std::size_t i = 0; i < kFaultKinds; ++i) {
        const auto kind = static_cast<FaultKind>(i);
        if (kind == FaultKind::restart) continue;  // follows from others
        EXPECT_NE(met.at(i), 0U) << name_of(kind);
    }
}

TEST(Scenarios, are_read_back_from_their_text) {
    const Scenario whole = Scenario::of_seed(77);
    EXPECT_EQ(whole.text(), "77");
    const Scenario less = whole.with_messages(300).with_faults({2, 5, 19});
    EXPECT_EQ(less.text(), "77:messages=300,faults=2.5.19");
    const Scenario again = Scenario::parse(less.text());
    EXPECT_EQ(again.text(), less.text());
    EXPECT_EQ(again.messages, 300U);
    ASSERT_EQ(again.faults.size(), 3U);
    EXPECT_EQ(again.faults[2].at_message, whole.faults[19].at_message);
    EXPECT_TRUE(Scenario::parse("77:faults=none").faults.empty());
}

TEST(Scenarios, that_cannot_be_are_refused) {
    for (const char* text : {"", "x", "7x", ":", "7:faults", "7:messages=", "7:faults=99",
                             "99999999999999999999999", "7:what=1"}) {
        EXPECT_THROW(Scenario::parse(text), rmem::Error) << text;
    }
}

}  // namespace
}  // namespace simulator
