// SPDX-License-Identifier: Apache-2.0
// ctest: full

#include "rmem/waiting.hpp"
#include "simulator/hunt/jobs.hpp"
#include "simulator/udp_hunt/hunt.hpp"

#include <gtest/gtest.h>

namespace simulator::udp {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kSeeds = 150;  // each takes ten times as long
#else
constexpr std::uint64_t kSeeds = 2000;
#endif

TEST(UdpHunt, of_two_thousand_seeds_meets_every_kind_of_fault_and_finds_nothing) {
    HuntPlan plan;
    plan.subject = subject();
    plan.seeds = kSeeds;
    plan.jobs = rmem::allowed_processors();
    const HuntResult result = hunt(plan);
    for (const FailedSeed& failed : result.failed) {
        ADD_FAILURE() << "seed " << failed.seed << ": " << failed.sentence;
    }
    EXPECT_EQ(result.seeds, kSeeds);
    for (const std::string& name : result.never_met()) ADD_FAILURE() << "never met: " << name;
    EXPECT_EQ(result.all.injected, kSeeds * Scenario::kFaults);
}

}  // namespace
}  // namespace simulator::udp
