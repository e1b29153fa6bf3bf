// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// Equal seeds are equal runs: again and again, and with both compilers (the thread sanitizer's
/// build is Clang's). The hashes change with every change of the protocols' writes or of a seed's
/// meaning.

#include "rmem/base/hash.hpp"
#include "simulator/bbp_hunt/hunt.hpp"

#include <gtest/gtest.h>

namespace simulator::bbp {
namespace {

std::uint64_t hash_of(const Scenario& scenario) {
    HuntOptions options;
    options.hash = true;
    const Findings findings = run_scenario(scenario, options);
    EXPECT_TRUE(findings.violations.empty()) << findings.violations.front();
    EXPECT_NE(findings.hash, 0U);
    return findings.hash;
}

TEST(TraceHash, the_hash_of_a_seed_is_the_same_in_a_hundred_runs) {
    const Scenario scenario = Scenario::of_seed(11).with_messages(150);
    const std::uint64_t first = hash_of(scenario);
    for (int run = 1; run < 100; ++run) ASSERT_EQ(hash_of(scenario), first) << "run " << run;
}

TEST(TraceHash, the_hash_of_seeds_is_the_same_with_every_compiler) {
    std::uint64_t all = 0;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        const std::uint64_t hash = hash_of(Scenario::of_seed(seed).with_messages(300));
        all = rmem::golden_mix(all, hash);
    }
    EXPECT_EQ(all, 9452975020440153600U);
}

TEST(TraceHash, differs_from_seed_to_seed) {
    EXPECT_NE(hash_of(Scenario::of_seed(1).with_messages(100)),
              hash_of(Scenario::of_seed(2).with_messages(100)));
}

}  // namespace
}  // namespace simulator::bbp
