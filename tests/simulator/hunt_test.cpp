// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Enough seeds to meet every kind of fault; a search for rarer bugs is `rmem sim hunt --seeds
/// 20000`.

#include "simulator/bbp_hunt/hunt.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "simulator/hunt/jobs.hpp"
#include "simulator/mpi_hunt/hunt.hpp"
#include "simulator/udp_hunt/hunt.hpp"
#include "tests/support/sanitizers.hpp"

#include <gtest/gtest.h>

namespace simulator {
namespace {

/// A sanitizer looks at the code, which few seeds run; it makes each take ten times as long.
constexpr std::uint64_t kShare = rmem::test::kSanitized ? 2 : 5;

/// Seeds of a hunt that has found nothing, with every kind of fault and every coverage mark met.
Findings hunt_for_nothing(const Subject& subject, std::uint64_t seeds) {
    HuntPlan plan;
    plan.subject = subject;
    plan.seeds = seeds;
    plan.jobs = rmem::allowed_processors();
    const HuntResult result = hunt(plan);
    for (const FailedSeed& failed : result.failed) {
        ADD_FAILURE() << "seed " << failed.seed << ": " << failed.sentence;
    }
    EXPECT_EQ(result.seeds, seeds);
    for (const std::string& name : result.never_met()) ADD_FAILURE() << "never met: " << name;
    return result.all;
}

TEST(BbpHunt, a_hunt_of_many_seeds_meets_every_kind_of_fault_and_finds_nothing) {
    constexpr std::uint64_t kSeeds = kShare * 20;
    const Findings all = hunt_for_nothing(bbp::subject(), kSeeds);
    EXPECT_GE(all.messages, kSeeds * bbp::Scenario::kMessages);
}

TEST(UdpHunt, a_hunt_of_many_seeds_meets_every_kind_of_fault_and_finds_nothing) {
    constexpr std::uint64_t kSeeds = kShare * 40;
    const Findings all = hunt_for_nothing(udp::subject(), kSeeds);
    EXPECT_EQ(all.injected, kSeeds * udp::Scenario::kFaults);
}

TEST(MpiHunt, a_hunt_of_many_seeds_meets_every_kind_of_fault_and_finds_nothing) {
    constexpr std::uint64_t kSeeds = kShare * 20;
    const Findings all = hunt_for_nothing(mpi::subject(), kSeeds);
    EXPECT_EQ(all.injected, kSeeds * mpi::Scenario::kFaults);
}

}  // namespace
}  // namespace simulator
