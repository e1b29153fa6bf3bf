// SPDX-License-Identifier: Apache-2.0

/// The hunt on the udp link finds nothing: some seeds, on a fabric, and all trials.

#include "simulator/udp_hunt/hunt.hpp"
#include "simulator/udp_hunt/trials.hpp"

#include <gtest/gtest.h>

namespace simulator::udp {
namespace {

TEST(UdpHunt, a_hunt_of_some_dozens_of_seeds_finds_nothing) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const Findings findings = run_scenario(Scenario::of_seed(seed));
        EXPECT_TRUE(findings.violations.empty()) << seed << ": " << findings.violations.front();
        EXPECT_EQ(findings.injected, Scenario::kFaults);
    }
}

TEST(UdpHunt, a_hunt_of_some_dozens_of_seeds_on_a_fabric_finds_nothing) {
    HuntOptions options;
    options.is_fabric = true;
    Findings all;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const Findings findings = run_scenario(Scenario::of_seed(seed), options);
        EXPECT_TRUE(findings.violations.empty()) << seed << ": " << findings.violations.front();
        all += findings;
    }
    const auto met = [&](CoverageMark mark) {
        return all.coverage.at(static_cast<std::size_t>(mark));
    };
    EXPECT_EQ(met(CoverageMark::overtaken), 0U) << "it keeps the order of each sender";
    EXPECT_GT(met(CoverageMark::retransmitted), 0U) << "and loses what a connection took along";
}

TEST(UdpHunt, a_hunt_of_a_dozen_seeds_finds_nothing_in_any_trial) {
    for (const FaultKind trial : kTrials) {
        HuntOptions options;
        options.trial = trial;
        for (std::uint64_t seed = 1; seed <= 12; ++seed) {
            const Findings findings =
                run_scenario(Scenario::of_seed(seed).with_messages(100), options);
            EXPECT_TRUE(findings.violations.empty())
                << seed << ", " << name_of(trial) << ": " << findings.violations.front();
            EXPECT_EQ(findings.faults.at(static_cast<std::size_t>(trial)), 1U);
        }
    }
}

/// A member was dropped for lacking nothing: another one's former incarnation was held for an heir
/// of a dead node's batches.
TEST(UdpHunt, a_hunt_of_seeds_whose_trial_once_failed_finds_nothing_any_more) {
    HuntOptions options;
    options.trial = FaultKind::apart;
    for (const std::uint64_t seed : {594U, 689U}) {
        EXPECT_TRUE(run_scenario(Scenario::of_seed(seed), options).violations.empty()) << seed;
    }
}

}  // namespace
}  // namespace simulator::udp
