// SPDX-License-Identifier: Apache-2.0
// ctest: check plain

/// Each hunt finds what is planted, within a few seeds: else one that finds nothing says nothing.

#include "billboard/core/endpoint_core.hpp"
#include "billboard/simulation.hpp"
#include "rmem/link/sim/memory.hpp"
#include "simulator/bbp_hunt/hunt.hpp"
#include "simulator/hunt/jobs.hpp"
#include "simulator/mpi_hunt/hunt.hpp"
#include "simulator/udp_hunt/hunt.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace simulator {

// ---- On the billboard: a posting board that raises its flag before the descriptor is written, and
// one that now and then forgets to acknowledge

namespace bbp {
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

HuntOptions with(const OpenEndpoint& open) {
    HuntOptions options;
    options.open = open;
    return options;
}

}  // namespace
}  // namespace bbp

// ---- On link udp: a node that forgets a batch now and then, one that acknowledges what it does
// not have, and one that says that longer datagrams reach it than do

namespace udp {
namespace {

/// One more than it is, in every acknowledgement.
void acknowledge_too_much(unsigned, std::span<std::byte> bytes) {
    rmem::udp::Datagram datagram;
    rmem::udp::Sections sections;
    const auto ring = rmem::load<std::uint64_t>(bytes.data() + 8);
    const std::size_t limit = rmem::udp::kMaxPayload;
    if (rmem::udp::read_datagram(bytes, ring, limit, datagram) != rmem::udp::Refusal::none) return;
    if (rmem::udp::read_sections(datagram, sections) != rmem::udp::Refusal::none) return;
    for (const rmem::udp::Section& section : sections) {
        if (section.type() != rmem::udp::SectionType::acks) continue;
        std::byte* const body = bytes.data() + (section.body().data() - bytes.data());
        rmem::store(body + 4, rmem::load<std::uint32_t>(body + 4) + 1);
    }
}

/// The longest datagrams, whatever reaches it.
void claim_to_be_reached(unsigned, std::span<std::byte> bytes) {
    rmem::store(bytes.data() + rmem::udp::kPayloadAt,
                static_cast<std::uint16_t>(rmem::udp::kMaxPayload));
}

HuntOptions forgetful() {
    HuntOptions options;
    options.may_store = [](unsigned, unsigned, const rmem::udp::Batch& batch) {
        return batch.sequence() % 64 != 0;
    };
    return options;
}

HuntOptions altering(void (*alter)(unsigned, std::span<std::byte>)) {
    HuntOptions options;
    options.alter = alter;
    return options;
}

/// Without a key: a bug planted in datagrams is not signed again.
Scenario without_key(std::uint64_t seed) {
    while (Scenario::of_seed(seed).has_key) ++seed;
    return Scenario::of_seed(seed);
}

}  // namespace
}  // namespace udp

// ---- On MPI's messages: between the channel interface and the device

namespace mpi {
namespace {

/// Does so to one in this many packets of each run, which copies this.
HuntOptions planted(Mischief mischief, unsigned one_in = 50) {
    HuntOptions options;
    options.mischief = [mischief, one_in, packets = 0U](unsigned, unsigned,
                                                        const mpi_channel::Packet&) mutable {
        return ++packets % one_in == 0 ? mischief : Mischief::none;
    };
    return options;
}

}  // namespace
}  // namespace mpi

namespace {

template <class Options>
struct Planted {
    const char* what;
    Options options;
    std::uint64_t last, step;  ///< of the seeds from 1 on within which it is found
};

struct Bbp {
    using Scenario = bbp::Scenario;
    static constexpr auto scenario = bbp::on_paper;
    static std::vector<Planted<bbp::HuntOptions>> planted() {
        return {
            {"a flag before its descriptor", bbp::with(bbp::open_planted<bbp::HastyBoard>), 41, 10},
            {"an acknowledgement that is forgotten",
             bbp::with(bbp::open_planted<bbp::ForgetfulBoard>), 191, 10}};
    }
};
struct Udp {
    using Scenario = udp::Scenario;
    static constexpr auto scenario = udp::without_key;
    static std::vector<Planted<udp::HuntOptions>> planted() {
        return {{"a batch that is not stored", udp::forgetful(), 5, 1},
                {"an acknowledgement of what is not there",
                 udp::altering(udp::acknowledge_too_much), 37, 4},
                {"longer datagrams than reach it", udp::altering(udp::claim_to_be_reached), 37, 4}};
    }
};
struct Mpi {
    using Scenario = mpi::Scenario;
    static constexpr auto scenario = Scenario::of_seed;
    static std::vector<Planted<mpi::HuntOptions>> planted() {
        using mpi::Mischief;
        return {{"a byte that has changed", mpi::planted(Mischief::damage), 3, 1},
                {"two packets that changed places", mpi::planted(Mischief::swap), 3, 1},
                {"a packet that is forgotten", mpi::planted(Mischief::forget), 3, 1},
                {"credit that is not given back", mpi::planted(Mischief::no_credit), 3, 1}};
    }
};

template <class TheScenario, class Options>
bool finds(const TheScenario& scenario, const Options& options) {
    return !run_scenario(scenario, options).violations.empty();
}

template <class Hunt>
class Canary : public testing::Test {};
using Hunts = testing::Types<Bbp, Udp, Mpi>;
TYPED_TEST_SUITE(Canary, Hunts, );

TYPED_TEST(Canary, what_is_planted_is_found_within_a_few_seeds) {
    for (const auto& planted : TypeParam::planted()) {
        bool is_found = false;
        for (std::uint64_t seed = 1; !is_found && seed <= planted.last; seed += planted.step)
            is_found = finds(TypeParam::scenario(seed), planted.options);
        EXPECT_TRUE(is_found) << planted.what;
    }
}

TYPED_TEST(Canary, shrinks_to_fewer_messages_and_faults_and_is_still_found) {
    using Scenario = typename TypeParam::Scenario;
    const auto options = TypeParam::planted().front().options;
    std::uint64_t seed = 1;
    while (!finds(TypeParam::scenario(seed), options)) ++seed;
    const Scenario failing = TypeParam::scenario(seed), small = shrink(failing, options);
    EXPECT_LT(small.messages, failing.messages);
    EXPECT_LT(small.faults.size(), failing.faults.size());
    EXPECT_TRUE(finds(Scenario::parse(small.text()), options));
}

TYPED_TEST(Canary, is_found_by_a_hunt_in_several_processes) {
    HuntPlan plan;
    plan.subject = subject(TypeParam::planted().front().options);
    plan.seeds = 20;
    plan.jobs = 2;
    EXPECT_FALSE(hunt(plan).failed.empty());
}

TEST(BbpCanary, the_same_seeds_find_nothing_where_nothing_is_planted) {
    for (std::uint64_t seed = 1; seed < 50; seed += 10)
        EXPECT_FALSE(finds(bbp::on_paper(seed), bbp::HuntOptions{})) << seed;
    HuntPlan plan;
    plan.seeds = 20;
    plan.jobs = 2;
    plan.subject = bbp::subject(bbp::with(bbp::open_planted<bbp::HastyBoard>));
    for (const FailedSeed& failed : hunt(plan).failed) {
        const auto layout = bbp::Scenario::of_seed(failed.seed).settings.board.layout;
        EXPECT_EQ(layout, billboard::Layout::paper) << failed.seed << ": " << failed.sentence;
    }
}

}  // namespace
}  // namespace simulator
