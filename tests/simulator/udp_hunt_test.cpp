// SPDX-License-Identifier: Apache-2.0

/// The hunt on the udp link: some seeds, those that once failed, and that it finds what is planted:
/// a node that forgets a batch now and then, and one that acknowledges what it does not have.

#include "simulator/udp_hunt/hunt.hpp"
#include "simulator/udp_hunt/trials.hpp"

#include "simulator/hunt/jobs.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace simulator::udp {
namespace {

bool finds(const Scenario& scenario, const HuntOptions& options) {
    return !run_scenario(scenario, options).violations.empty();
}

/// One more than it is, in every acknowledgement.
void acknowledge_too_much(unsigned, std::span<std::byte> bytes) {
    rmem::udp::Datagram datagram;
    rmem::udp::Sections sections;
    const auto ring = rmem::udp::load<std::uint64_t>(bytes.data() + 8);
    const std::size_t limit = rmem::udp::kMostPayload;
    if (rmem::udp::read_datagram(bytes, ring, limit, datagram) != rmem::udp::Refusal::none) return;
    if (rmem::udp::read_sections(datagram, sections) != rmem::udp::Refusal::none) return;
    for (const rmem::udp::Section& section : sections) {
        if (section.type() != rmem::udp::SectionType::acks) continue;
        std::byte* const body = bytes.data() + (section.body().data() - bytes.data());
        rmem::udp::store(body + 4, rmem::udp::load<std::uint32_t>(body + 4) + 1);
    }
}

/// The longest datagrams, whatever reaches it.
void claim_to_be_reached(unsigned, std::span<std::byte> bytes) {
    rmem::udp::store(bytes.data() + rmem::udp::kPayloadAt,
                     static_cast<std::uint16_t>(rmem::udp::kMostPayload));
}

HuntOptions forgetful() {
    HuntOptions options;
    options.may_store = [](unsigned, unsigned, const rmem::udp::Batch& batch) {
        return batch.sequence() % 64 != 0;
    };
    return options;
}

/// Without a key: a bug planted in datagrams is not signed again.
std::uint64_t seed_without_key(std::uint64_t seed) {
    while (Scenario::of_seed(seed).has_key) ++seed;
    return seed;
}

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

TEST(UdpHunt, a_hunt_of_seeds_that_once_failed_finds_nothing_any_more) {
    std::ifstream file(std::string(RMEM_SOURCE_DIR) + "/tests/simulator/udp_seeds.txt");
    ASSERT_TRUE(file);
    unsigned seeds = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        const Findings findings = run_scenario(Scenario::parse(line.substr(0, line.find(' '))));
        EXPECT_TRUE(findings.violations.empty()) << line << "\n" << findings.violations.front();
        ++seeds;
    }
    EXPECT_NE(seeds, 0U);
}

/// A member was dropped for lacking nothing: another one's former incarnation was held for an heir
/// of a dead node's batches.
TEST(UdpHunt, a_hunt_of_seeds_whose_trial_once_failed_finds_nothing_any_more) {
    HuntOptions options;
    options.trial = FaultKind::apart;
    for (const std::uint64_t seed : {594U, 689U}) {
        EXPECT_FALSE(finds(Scenario::of_seed(seed), options)) << seed;
    }
}

TEST(UdpHunt, finds_a_batch_that_is_not_stored) {
    bool found = false;
    for (std::uint64_t seed = 1; !found && seed <= 5; ++seed) {
        found = finds(Scenario::of_seed(seed), forgetful());
    }
    EXPECT_TRUE(found);
}

TEST(UdpHunt, finds_an_acknowledgement_of_what_is_not_there) {
    HuntOptions options;
    options.alter = acknowledge_too_much;
    bool found = false;
    for (std::uint64_t seed = 1; !found && seed <= 40; seed += 4) {
        found = finds(Scenario::of_seed(seed_without_key(seed)), options);
    }
    EXPECT_TRUE(found);
}

TEST(UdpHunt, finds_a_node_that_says_that_longer_datagrams_reach_it_than_do) {
    HuntOptions options;
    options.alter = claim_to_be_reached;
    bool found = false;
    for (std::uint64_t seed = 1; !found && seed <= 40; seed += 4) {
        found = finds(Scenario::of_seed(seed_without_key(seed)), options);
    }
    EXPECT_TRUE(found);
}

TEST(UdpHunt, shrinks_what_it_finds_to_fewer_messages_and_faults) {
    std::uint64_t seed = 1;
    while (!finds(Scenario::of_seed(seed), forgetful())) ++seed;
    const Scenario small = shrink(Scenario::of_seed(seed), forgetful());
    EXPECT_LT(small.messages, Scenario::kMessages);
    EXPECT_LT(small.faults.size(), std::size_t{Scenario::kFaults});
    EXPECT_TRUE(finds(Scenario::parse(small.text()), forgetful()));
}

TEST(UdpHunt, a_hunt_in_several_processes_finds_what_is_planted) {
    HuntPlan plan;
    plan.subject = subject(forgetful());
    plan.seeds = 10;
    plan.jobs = 2;
    const HuntResult result = hunt(plan);
    EXPECT_FALSE(result.failed.empty());
}

TEST(UdpHunt, a_hunt_of_equal_seeds_is_equal_runs) {
    HuntOptions options;
    options.hash = true;
    const Scenario scenario = Scenario::of_seed(11).with_messages(200);
    const std::uint64_t hash = run_scenario(scenario, options).hash;
    EXPECT_NE(hash, 0U);
    for (int run = 0; run < 10; ++run) ASSERT_EQ(run_scenario(scenario, options).hash, hash);
    EXPECT_NE(run_scenario(Scenario::of_seed(12).with_messages(200), options).hash, hash);
}

}  // namespace
}  // namespace simulator::udp
