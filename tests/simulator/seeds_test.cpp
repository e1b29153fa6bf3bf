// SPDX-License-Identifier: Apache-2.0

/// Seeds of each hunt: those that once failed do not again, and equal ones are equal runs.

#include "simulator/bbp_hunt/hunt.hpp"
#include "simulator/mpi_hunt/hunt.hpp"
#include "simulator/udp_hunt/hunt.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace simulator {
namespace {

template <class TheScenario, class TheOptions, const char* const kFile>
struct Hunt {
    using Scenario = TheScenario;
    using Options = TheOptions;
    static std::string file() { return std::string(RMEM_SOURCE_DIR) + "/tests/simulator/" + kFile; }
};
constexpr char kBbp[] = "seeds.txt", kMpi[] = "mpi_seeds.txt", kUdp[] = "udp_seeds.txt";

template <class Hunt>
class Seeds : public testing::Test {};
using AllHunts = testing::Types<Hunt<bbp::Scenario, bbp::HuntOptions, kBbp>,
                                Hunt<mpi::Scenario, mpi::HuntOptions, kMpi>,
                                Hunt<udp::Scenario, udp::HuntOptions, kUdp>>;
TYPED_TEST_SUITE(Seeds, AllHunts, );

TYPED_TEST(Seeds, seeds_that_once_failed_find_nothing_any_more) {
    std::ifstream file(TypeParam::file());
    ASSERT_TRUE(file);
    unsigned seeds = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        const Findings findings =
            run_scenario(TypeParam::Scenario::parse(line.substr(0, line.find(' '))));
        EXPECT_TRUE(findings.violations.empty()) << line << "\n" << findings.violations.front();
        ++seeds;
    }
    EXPECT_NE(seeds, 0U);
}

TYPED_TEST(Seeds, equal_seeds_are_equal_runs_and_others_are_not) {
    typename TypeParam::Options options;
    options.hash = true;
    const auto hash_of = [&](std::uint64_t seed) {
        return run_scenario(TypeParam::Scenario::of_seed(seed).with_messages(100), options).hash;
    };
    const std::uint64_t hash = hash_of(11);
    EXPECT_NE(hash, 0U);
    for (int run = 0; run < 30; ++run) ASSERT_EQ(hash_of(11), hash);
    EXPECT_NE(hash_of(12), hash);
}

}  // namespace
}  // namespace simulator
