// SPDX-License-Identifier: Apache-2.0
#include "billboard/simulation.hpp"
#include "rmem/base/process_state.hpp"
#include "rmem/sim/world.hpp"
#include "tests/support/rank_processes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

namespace rmem::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLookEachNs = 1'000'000;
/// A process's message takes this long to the test; in that time the wire brings earlier writes.
constexpr std::chrono::microseconds kPause(200);

[[maybe_unused]] const bool registered = sim::exchanges<last_place>();

std::int64_t in_ns(std::chrono::nanoseconds time) {
    return time.count();
}

sim::WorldConfig world_of(const RingSetup& setup, const std::string& ring) {
    sim::WorldConfig world;
    world.environment = environment_of(setup, ring, {});
    world.ring.name = ring;
    world.ring.nodes = world.ring.ranks = setup.ranks;
    world.ring.user_bytes = 4096;
    world.ring.timing = parse_timing(setup.timing);
    world.stack_bytes = std::size_t{1} << 20;  // sanitizers make frames large
    const auto& extra = setup.extra;
    if (const auto nodes = extra.find("RMEM_NODES"); nodes != extra.end()) {
        world.ring.nodes = parse_unsigned(nodes->first, nodes->second, kMaxNodes);
    }
    billboard::Settings settings;
    settings.board = {billboard::parse_layout(setup.layout), setup.partition};
    if (const auto barrier = extra.find("RMEM_BARRIER"); barrier != extra.end()) {
        settings.barrier = barrier->second == "paper" ? billboard::BarrierKind::paper
                                                      : billboard::BarrierKind::arrival;
    }
    return billboard::simulated(world, settings);
}

/// Ranks that are processes of a simulated world, in the test's own process.
///
/// The world goes on only while the test waits for something, and all deadlines are in its time. It
/// ends early, with a sentence that says so, when nothing can happen any more, and when the test
/// takes as long in the host's time as it may in the world's.
class SimulatedRanks final : public RankHost {
public:
    SimulatedRanks(const RingSetup& setup, const std::string& ring)
        : setup_(setup),
          shared_(std::make_unique<Shared>()),
          host_deadline_(Clock::now() + setup.deadline),
          deadline_ns_(in_ns(setup.deadline)),
          world_(world_of(setup, ring)) {}

    Shared& shared() override { return *shared_; }

    void start(RankRun what) override {
        if (!what.doomed.empty()) throw std::invalid_argument("only real processes die at marks");
        runs_.push_back({std::move(what), {}});
        Run& rank_run = runs_.back();
        world_.start(rank_run.what.rank,
                     [this, &rank_run](sim::Process& process) { run(process, rank_run); });
    }

    void kill(unsigned rank) override {
        world_.kill(rank);
        let_pass(kPause);
    }

    void stop(unsigned rank) override {
        if (world_.has_ended(rank))
            ADD_FAILURE() << "rank " << rank << " ended instead of stopping";
        world_.stop(rank);
    }

    void resume(unsigned rank) override { world_.resume(rank); }

    void await_value(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                     std::string_view name, Place place) override {
        if (go_on_until([&] { return word >= value || failed_; }) && !failed_)
            return let_pass(kPause);
        throw CheckFailed(place, fmt::format("{} stayed at {} instead of {}{}{}", name, word.load(),
                                             value, over_.empty() ? "" : ": ", over_));
    }

    void wait(unsigned rank) override {
        if (go_on_until([&] { return world_.has_ended(rank); })) let_pass(kPause);
    }

    void let_pass(std::chrono::nanoseconds time) override {
        bool passed = false;
        world_.at(world_.now_ns() + in_ns(time), [&] { passed = true; });
        while (!passed) world_.step();
        report_failures();
    }

    void finish() override {
        if (!go_on_until([&] { return !anyone_runs(); })) end_all();
    }

private:
    struct Run {
        RankRun what;
        std::string said;  ///< why it failed
        bool told = false;
    };

    /// The program of a process.
    void run(sim::Process& process, Run& rank_run) {
        last_place = &shared_->places[process.rank()];
        for (const auto& [name, value] : rank_run.what.changes) {
            process.set_variable(name, value.empty() ? std::nullopt : std::optional(value));
        }
        try {
            return live(rank_run.what, setup_, *shared_);
        } catch (const std::exception& error) {
            rank_run.said = error.what();
        }
        world_.kill(process.rank());  // it must not leave in good order
    }

    /// False when the world is over before it holds.
    bool go_on_until(const std::function<bool()>& holds) {
        while (!holds()) {
            if (!go_on()) return false;
        }
        return true;
    }

    bool go_on() {
        if (!looks_at_the_time_) {
            look_at_the_time();
            if (!over_.empty()) return false;
            // A process that never waits for others comes to an end of its turn then.
            world_.at(world_.now_ns() + kLookEachNs, [this] { looks_at_the_time_ = false; });
            looks_at_the_time_ = true;
        }
        world_.step();
        report_failures();
        return true;
    }

    void look_at_the_time() {
        if (world_.next_ns() == kNever) {
            over_ = "the simulated world is stuck, nothing can happen in it any more";
        } else if (world_.now_ns() > deadline_ns_) {
            over_ =
                failed_ ? "another rank had failed" : "the test's deadline passed in virtual time";
        } else if (Clock::now() > host_deadline_) {
            over_ = fmt::format("the test's deadline passed, at {} ns of virtual time",
                                world_.now_ns());
        }
    }

    void report_failures() {
        for (Run& rank_run : runs_) {
            if (rank_run.said.empty() || rank_run.told) continue;
            ADD_FAILURE() << "rank " << rank_run.what.rank << ": " << rank_run.said;
            rank_run.told = true;
            if (!failed_) deadline_ns_ = std::min(deadline_ns_, world_.now_ns() + in_ns(kGrace));
            failed_ = true;
        }
    }

    bool anyone_runs() const {
        for (unsigned rank = 0; rank < world_.ranks(); ++rank) {
            if (world_.runs(rank)) return true;
        }
        return false;
    }

    void end_all() {
        for (unsigned rank = 0; rank < world_.ranks(); ++rank) {
            if (world_.has_ended(rank)) continue;
            ADD_FAILURE() << "rank " << rank << " did not end: " << over_ << "; last seen "
                          << describe(shared_->places[rank]);
            world_.kill(rank);
        }
        failed_ = true;
    }

    const RingSetup& setup_;
    std::unique_ptr<Shared> shared_;
    std::deque<Run> runs_;
    std::chrono::steady_clock::time_point host_deadline_;
    std::int64_t deadline_ns_;
    bool looks_at_the_time_ = false;  ///< it is going to, after some virtual time
    bool failed_ = false;
    std::string over_;  ///< why the world does not go on
    sim::World world_;  // last: its processes use the others
};

}  // namespace

std::unique_ptr<RankHost> simulated_ranks(const RingSetup& setup, const std::string& ring) {
    return std::make_unique<SimulatedRanks>(setup, ring);
}

}  // namespace rmem::test
