// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ranks that are forked processes, each with its own environment.
///
/// Thread safety, errors: tests/support/rank_processes.hpp. Fork only from a test without threads.

#include "tests/support/rank_host.hpp"

#include <sys/types.h>

#include <chrono>
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
        unsigned rank = 0;
        pid_t pid = -1;
        int pipe = -1;  ///< read end of its output
        bool ended = false;
        bool killed = false;  ///< by the test, so its end is no failure
        std::string doomed;   ///< the mark at which it must be killed
        std::string said;
    };

    [[noreturn]] void run_child(const RankRun& rank_run, int pipe);
    void set_environment(const RankRun& rank_run) const;
    Process& latest(unsigned rank);
    bool collect();  ///< takes what the processes have said; false when all have ended
    void report(Process& process, int status);
    void end_all(std::string_view why);
    void remove_nodes_of_the_killed();
    std::vector<std::string> left_behind() const;

    const RingSetup& setup_;
    const std::string& ring_;
    Shared* shared_ = nullptr;
    std::vector<Process> processes_;
    std::chrono::steady_clock::time_point deadline_;
    bool failed_ = false;
};

}  // namespace rmem::test
