// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ranks that are forked processes, each with its own environment.
///
/// Thread safety, errors: tests/support/rank_processes.hpp. Fork only from a test without threads.

#include "tests/support/child.hpp"
#include "tests/support/rank_processes.hpp"

#include <array>
#include <chrono>
#include <deque>
#include <vector>

namespace rmem::test {

class ForkedRanks final : public RankHost {
public:
    ForkedRanks(const RingSetup& setup, const std::string& ring);
    ~ForkedRanks() override;

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
    struct Process {
        Process(ForkedRanks& ranks, const RankRun& rank_run)
            : rank(rank_run.rank),
              doomed(rank_run.doomed),
              child([&] { ranks.run_child(rank_run, *said); }) {}

        const unsigned rank;
        const std::string doomed;  ///< the mark at which it must be killed
        bool ended = false;
        bool killed = false;                       ///< by the test, so its end is no failure
        SharedValue<std::array<char, 4096>> said;  ///< what failed
        Child child;
    };

    void run_child(const RankRun& rank_run, std::array<char, 4096>& said);
    void set_environment(const RankRun& rank_run) const;
    Process& latest(unsigned rank);
    bool collect();  ///< looks for processes that have ended; false when all have
    void has_ended(Process& process, int code);
    void end_all(std::string_view why);
    void remove_nodes_of_the_killed();
    std::vector<std::string> left_behind() const;

    const RingSetup& setup_;
    const std::string& ring_;
    SharedValue<Shared> shared_;
    std::deque<Process> processes_;
    std::chrono::steady_clock::time_point deadline_;
    bool failed_ = false;
};

}  // namespace rmem::test
