// SPDX-License-Identifier: Apache-2.0

/// The scenarios of all hunts.

#include "simulator/bbp_hunt/scenario.hpp"
#include "rmem/error.hpp"
#include "simulator/mpi_hunt/scenario.hpp"
#include "simulator/udp_hunt/scenario.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace simulator {
namespace {

template <class Scenario>
class Scenarios : public testing::Test {};

using All = testing::Types<bbp::Scenario, mpi::Scenario, udp::Scenario>;
TYPED_TEST_SUITE(Scenarios, All, );

unsigned nodes_of(const RingScenario& scenario) {
    return scenario.kRanks;
}
unsigned nodes_of(const udp::Scenario& scenario) {
    return scenario.nodes;
}

TYPED_TEST(Scenarios, have_as_many_messages_and_faults_as_promised) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        const TypeParam scenario = TypeParam::of_seed(seed);
        EXPECT_EQ(scenario.messages, unsigned{TypeParam::kMessages});
        EXPECT_EQ(scenario.faults.size(), std::size_t{TypeParam::kFaults});
        for (const auto& fault : scenario.faults) {
            EXPECT_LE(fault.at_message, scenario.messages);
            EXPECT_LT(fault.target, nodes_of(scenario));
        }
    }
}

TYPED_TEST(Scenarios, scenarios_of_a_few_hundred_seeds_have_every_kind_of_fault) {
    std::set<std::string> met = {"restart", "pause", "apart", "replay"};  // not drawn
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        for (const auto& fault : TypeParam::of_seed(seed).faults) met.insert(name_of(fault.kind));
    }
    for (const auto kind : TypeParam::kFaultKinds) EXPECT_EQ(met.count(name_of(kind)), 1U);
}

TYPED_TEST(Scenarios, are_read_back_from_their_text) {
    const TypeParam whole = TypeParam::of_seed(77);
    EXPECT_EQ(whole.text(), "77");
    const TypeParam less = whole.with_messages(200).with_faults({2, 5, 9});
    EXPECT_EQ(less.text(), "77:messages=200,faults=2.5.9");
    const TypeParam again = TypeParam::parse(less.text());
    EXPECT_EQ(again.text(), less.text());
    EXPECT_EQ(again.messages, 200U);
    ASSERT_EQ(again.faults.size(), 3U);
    EXPECT_EQ(again.faults[2].at_message, whole.faults[9].at_message);
    EXPECT_TRUE(TypeParam::parse("77:faults=none").faults.empty());
}

TYPED_TEST(Scenarios, meet_their_faults_earlier_with_fewer_messages) {
    const TypeParam whole = TypeParam::of_seed(77);
    const auto faults = whole.with_messages(whole.kMessages / 2).due_faults();
    ASSERT_EQ(faults.size(), whole.faults.size());
    for (std::size_t i = 0; i < faults.size(); ++i) {
        EXPECT_EQ(faults[i].at_message, whole.faults[i].at_message / 2);
    }
}

TYPED_TEST(Scenarios, check_that_faults_are_in_the_order_in_which_they_are_due) {
    TypeParam scenario = TypeParam::of_seed(77);
    std::reverse(scenario.faults.begin(), scenario.faults.end());
    EXPECT_BROKEN(static_cast<void>(scenario.due_faults()));
}

TYPED_TEST(Scenarios, scenarios_that_cannot_be_are_refused) {
    for (const char* text : {"", "x", "7x", ":", "7:faults", "7:messages=", "7:faults=99",
                             "7:faults=9.2", "99999999999999999999999", "7:what=1"}) {
        EXPECT_THROW(TypeParam::parse(text), rmem::Error) << text;
    }
}

}  // namespace
}  // namespace simulator
