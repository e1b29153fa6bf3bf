// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A host for the ranks of a RankProcesses (tests/support/rank_processes.hpp, which documents each
/// function): forked processes, or simulated ones.

#include "tests/support/rank_processes.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace rmem::test {

/// One incarnation of a rank.
struct RankRun {
    unsigned rank = 0;
    Body body;
    bool joins = false;  ///< the body runs between bbp_init and bbp_finalize
    std::map<std::string, std::string> changes;  ///< of its environment; "": unset
    std::string doomed;                          ///< the mark at which it must be killed
};

class RankHost {
public:
    RankHost() = default;
    virtual ~RankHost() = default;
    RankHost(const RankHost&) = delete;
    RankHost& operator=(const RankHost&) = delete;

    virtual Shared& shared() = 0;
    virtual void start(RankRun rank_run) = 0;
    virtual void kill(unsigned rank) = 0;
    virtual void stop(unsigned rank) = 0;
    virtual void resume(unsigned rank) = 0;
    virtual void await_value(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                             std::string_view name, Place place) = 0;
    virtual void wait(unsigned rank) = 0;
    virtual void let_pass(std::chrono::nanoseconds time) = 0;
    virtual void finish() = 0;
};

/// All that a rank finds in its environment, "" where it must find nothing.
std::map<std::string, std::string> environment_of(const RingSetup& setup, const std::string& ring,
                                                  const RankRun& rank_run);

/// Runs the body, in the rank's process. Throws what the body does, and CheckFailed.
void live(const RankRun& rank_run, const RingSetup& setup, Shared& shared);

/// "at file:line", of the last check that a rank came to.
std::string describe(Place place);

}  // namespace rmem::test
