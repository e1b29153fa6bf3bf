// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// Equal seeds are equal runs with both compilers: the thread sanitizer's build is Clang's. (Again
/// and again: seeds_test.cpp.) The hashes change with every change of the protocols' writes or of a
/// seed's meaning.

#include "rmem/base/hash.hpp"
#include "simulator/bbp_hunt/hunt.hpp"

#include <gtest/gtest.h>

namespace simulator::bbp {
namespace {

TEST(TraceHash, the_hash_of_seeds_is_the_same_with_every_compiler) {
    HuntOptions options;
    options.hash = true;
    std::uint64_t all = 0;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        const Findings findings = run_scenario(Scenario::of_seed(seed).with_messages(300), options);
        EXPECT_TRUE(findings.violations.empty()) << findings.violations.front();
        all = rmem::golden_mix(all, findings.hash);
    }
    EXPECT_EQ(all, 5965179390550396267U);
}

}  // namespace
}  // namespace simulator::bbp
