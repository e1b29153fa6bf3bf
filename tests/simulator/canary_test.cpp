// SPDX-License-Identifier: Apache-2.0
// ctest: check plain

/// The hunt finds what is planted: a posting board that raises its flag before the descriptor is
/// written, and one that now and then forgets to acknowledge. Without that, a hunt that finds
/// nothing says nothing.

#include "billboard/core/endpoint_core.hpp"
#include "billboard/simulation.hpp"
#include "rmem/link/sim/memory.hpp"
#include "simulator/bbp_hunt/hunt.hpp"
#include "simulator/hunt/jobs.hpp"

#include <gtest/gtest.h>

namespace simulator::bbp {
namespace {

using rmem::sim::SimMemory;

template <class M>
class HastyBoard : public billboard::PaperBoard<M> {
public:
    using billboard::PaperBoard<M>::PaperBoard;
    void post_alone(unsigned s, unsigned buffer, const billboard::Descriptor& d) {
        this->post(s, buffer);
        this->describe(buffer, d);
    }
};

template <class M>
class ForgetfulBoard : public billboard::PaperBoard<M> {
public:
    using billboard::PaperBoard<M>::PaperBoard;
    void acknowledge(unsigned s, unsigned buffer) {
        if (++answers_ % 100 != 0) billboard::PaperBoard<M>::acknowledge(s, buffer);
    }

private:
    unsigned answers_ = 0;
};

template <template <class> class Board>
std::unique_ptr<billboard::Endpoint> open_planted() {
    // With the other layout nothing is planted: a failure must be due to the planted bug.
    if (billboard::Settings::read().board.layout != billboard::Layout::paper) {
        return billboard::Endpoint::open();
    }
    rmem::sim::Process& process = *rmem::sim::current_process();
    return std::make_unique<billboard::EndpointCore<SimMemory, Board>>(
        std::make_shared<rmem::sim::Ring>(process.world()),
        rmem::Member{process.rank(), process.node()}, billboard::Settings::read(),
        billboard::Deadline::after(process.now_ns(), 1'000'000'000));
}

/// The planted boards are of the layout `paper`.
Scenario on_paper(std::uint64_t seed) {
    while (Scenario::of_seed(seed).settings.board.layout != billboard::Layout::paper) ++seed;
    return Scenario::of_seed(seed);
}

bool finds(const OpenEndpoint& open, const Scenario& scenario) {
    HuntOptions options;
    options.open = open;
    return !run_scenario(scenario, options).violations.empty();
}

TEST(Canary, a_flag_before_its_descriptor_is_found_within_a_few_seeds) {
    bool found = false;
    for (std::uint64_t seed = 1; !found && seed < 50; seed += 10) {
        found = finds(open_planted<HastyBoard>, on_paper(seed));
    }
    EXPECT_TRUE(found);
}

TEST(Canary, an_acknowledgement_that_is_forgotten_is_found_within_a_few_seeds) {
    bool found = false;
    for (std::uint64_t seed = 1; !found && seed < 200; seed += 10) {
        found = finds(open_planted<ForgetfulBoard>, on_paper(seed));
    }
    EXPECT_TRUE(found);
}

TEST(Canary, the_same_seeds_find_nothing_where_nothing_is_planted) {
    for (std::uint64_t seed = 1; seed < 50; seed += 10) {
        EXPECT_FALSE(finds({}, on_paper(seed))) << seed;
    }
}

TEST(Canary, shrinks_to_fewer_messages_and_faults_and_is_still_found) {
    HuntOptions options;
    options.open = open_planted<HastyBoard>;
    Scenario failing = on_paper(1);
    for (std::uint64_t seed = 1; !finds(options.open, failing); seed += 10)
        failing = on_paper(seed);
    const Scenario small = shrink(failing, options);
    EXPECT_LT(small.messages, failing.messages);
    EXPECT_LT(small.faults.size(), failing.faults.size());
    EXPECT_TRUE(finds(options.open, Scenario::parse(small.text())));
}

TEST(Canary, is_found_by_a_hunt_in_several_processes) {
    HuntPlan plan;
    plan.seeds = 20;
    plan.jobs = 2;
    HuntOptions options;
    options.open = open_planted<HastyBoard>;
    plan.subject = subject(options);
    const HuntResult result = hunt(plan);
    EXPECT_FALSE(result.failed.empty());
    for (const FailedSeed& failed : result.failed) {
        const auto layout = Scenario::of_seed(failed.seed).settings.board.layout;
        EXPECT_EQ(layout, billboard::Layout::paper) << failed.seed << ": " << failed.sentence;
    }
}

}  // namespace
}  // namespace simulator::bbp
