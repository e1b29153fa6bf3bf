// SPDX-License-Identifier: Apache-2.0

/// Seeds that once failed, and must not again: tests/simulator/seeds.txt.

#include "simulator/bbp_hunt/hunt.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace simulator::bbp {
namespace {

TEST(Seeds, seeds_that_once_failed_find_nothing_any_more) {
    std::ifstream file(std::string(RMEM_SOURCE_DIR) + "/tests/simulator/seeds.txt");
    ASSERT_TRUE(file);
    unsigned seeds = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        const std::string seed = line.substr(0, line.find(' '));
        const Findings findings = run_scenario(Scenario::parse(seed));
        EXPECT_TRUE(findings.violations.empty()) << line << "\n" << findings.violations.front();
        ++seeds;
    }
    EXPECT_NE(seeds, 0U);
}

}  // namespace
}  // namespace simulator::bbp
