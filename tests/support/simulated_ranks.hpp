// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ranks that are processes of a simulated world, in the test's own process.
///
/// The world goes on only while the test waits for something, and all deadlines are in its time. It
/// ends early, with a sentence that says so, when nothing can happen any more, and when the test
/// takes as long in the host's time as it may in the world's.
/// Thread safety, errors: tests/support/rank_processes.hpp.

#include "rmem/sim/world.hpp"
#include "tests/support/rank_processes.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>

namespace rmem::test {

class SimulatedRanks final : public RankHost {
public:
    SimulatedRanks(const RingSetup& setup, const std::string& ring);

    Shared& shared() override { return *shared_; }
    void start(RankRun rank_run) override;
    void kill(unsigned rank) override;
    void stop(unsigned rank) override;
    void resume(unsigned rank) override;
    void await_value(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                     std::string_view name, Place place) override;
    void wait(unsigned rank) override;
    void let_pass(std::chrono::nanoseconds time) override;
    void finish() override;

private:
    struct Run {
        RankRun what;
        std::string said;  ///< why it failed
        bool told = false;
    };

    void run(sim::Process& process, Run& rank_run);
    bool go_on_until(const std::function<bool()>& holds);
    bool go_on();
    void look_at_the_time();
    void report_failures();
    bool anyone_runs() const;
    void end_all();

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

}  // namespace rmem::test
