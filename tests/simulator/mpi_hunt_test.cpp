// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// The hunt on MPI's messages finds nothing, and finds what is planted between the channel
/// interface and the device.

#include "simulator/hunt/jobs.hpp"
#include "simulator/mpi_hunt/hunt.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

namespace simulator::mpi {
namespace {

using mpi_channel::Packet;

/// Does so to one in this many packets.
HuntOptions planted(Mischief mischief, unsigned one_in) {
    HuntOptions options;
    options.mischief = [mischief, one_in, packets = std::make_shared<unsigned>(0)](
                           unsigned, unsigned, const Packet&) {
        return ++*packets % one_in == 0 ? mischief : Mischief::none;
    };
    return options;
}

bool finds(const Scenario& scenario, const HuntOptions& options) {
    return !run_scenario(scenario, options).violations.empty();
}

/// Within this many seeds.
bool is_found(Mischief mischief, std::uint64_t seeds) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        if (finds(Scenario::of_seed(seed), planted(mischief, 50))) return true;
    }
    return false;
}

TEST(MpiHunt, a_hunt_of_some_dozens_of_seeds_finds_nothing) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const Findings findings = run_scenario(Scenario::of_seed(seed));
        EXPECT_TRUE(findings.violations.empty()) << seed << ": " << findings.violations.front();
        EXPECT_EQ(findings.injected, Scenario::kFaults);
    }
}

TEST(MpiHunt, a_hunt_of_seeds_that_once_failed_finds_nothing_any_more) {
    std::ifstream file(std::string(RMEM_SOURCE_DIR) + "/tests/simulator/mpi_seeds.txt");
    ASSERT_TRUE(file);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        const Findings findings = run_scenario(Scenario::parse(line.substr(0, line.find(' '))));
        EXPECT_TRUE(findings.violations.empty()) << line << "\n" << findings.violations.front();
    }
}

TEST(MpiHunt, finds_two_packets_of_a_sender_that_changed_places) {
    EXPECT_TRUE(is_found(Mischief::swap, 3));
}

TEST(MpiHunt, finds_a_packet_that_is_forgotten) {
    EXPECT_TRUE(is_found(Mischief::forget, 3));
}

TEST(MpiHunt, finds_credit_that_is_not_given_back) {
    EXPECT_TRUE(is_found(Mischief::no_credit, 3));
}

TEST(MpiHunt, finds_a_byte_that_has_changed) {
    EXPECT_TRUE(is_found(Mischief::damage, 3));
}

TEST(MpiHunt, shrinks_what_it_finds_to_fewer_messages_and_faults) {
    const HuntOptions options = planted(Mischief::damage, 2);
    std::uint64_t seed = 1;
    while (!finds(Scenario::of_seed(seed), options)) ++seed;
    const Scenario small = shrink(Scenario::of_seed(seed), options);
    EXPECT_LT(small.messages, Scenario::kMessages);
    EXPECT_LT(small.faults.size(), std::size_t{Scenario::kFaults});
    EXPECT_TRUE(finds(Scenario::parse(small.text()), options));
}

TEST(MpiHunt, a_hunt_in_several_processes_finds_what_is_planted) {
    HuntPlan plan;
    plan.subject = subject(planted(Mischief::forget, 50));
    plan.seeds = 10;
    plan.jobs = 2;
    EXPECT_FALSE(hunt(plan).failed.empty());
}

TEST(MpiHunt, a_hunt_of_equal_seeds_is_equal_runs) {
    HuntOptions options;
    options.hash = true;
    const Scenario scenario = Scenario::of_seed(11).with_messages(100);
    const std::uint64_t hash = run_scenario(scenario, options).hash;
    EXPECT_NE(hash, 0U);
    for (int run = 0; run < 10; ++run) ASSERT_EQ(run_scenario(scenario, options).hash, hash);
    EXPECT_NE(run_scenario(Scenario::of_seed(12).with_messages(100), options).hash, hash);
}

}  // namespace
}  // namespace simulator::mpi
