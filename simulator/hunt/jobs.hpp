// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Many seeds, in several processes at once.
///
/// Processes and not threads, because a simulated program's C interface keeps one state per
/// process. A seed that ends its process (a crash, an endless loop that the watchdog ends) is a
/// failure of that seed, and the others go on in a new process.
///
/// Thread safety: call it without other threads running. Errors: rmem::Error(system) when a process
///   cannot be started.

#include "simulator/hunt/subject.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace simulator {

struct HuntPlan {
    static constexpr unsigned kMaxSecondsASeed = 120;

    std::uint64_t first = 1;
    std::uint64_t seeds = 1;
    unsigned jobs = 1;
    bool hash = false;
    unsigned most_failures = 10;  ///< then it ends early
    Subject subject;
};

struct FailedSeed {
    std::uint64_t seed = 0;
    std::string sentence;  ///< the first thing that was broken
    bool crashed = false;  ///< it cannot be shrunk in this process
};

struct HuntResult {
    Findings all;  ///< its hash is of all seeds', in order of the seeds
    Kinds kinds;
    std::uint64_t seeds = 0;
    std::vector<FailedSeed> failed;

    /// Faults and coverage marks that were never met, by name.
    std::vector<std::string> never_met() const;
};

/// `progress` is told now and then how many seeds are done and how many of them failed.
HuntResult hunt(const HuntPlan& plan,
                const std::function<void(std::uint64_t, std::size_t)>& progress = {});

}  // namespace simulator
