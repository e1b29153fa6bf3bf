// SPDX-License-Identifier: Apache-2.0
#pragma once

/// N ranks of one ring as forked processes, for measurements.
///
/// Each child joins by bbp_init, as any program does, and runs the body; rank 0's body records
/// results in memory shared with the parent. Children are pinned to the processors given, in turn.
/// Errors: `rmem::Error` when a rank fails (its sentence) or does not end in time; then all are
/// ended.
/// Invariants, executed: a group has ranks, and a series a name that is not cut off.
/// Thread safety: fork() is called: use it before there are threads.

#include "tools/measure/processes.hpp"
#include "tools/processors.hpp"

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tools {

/// The user's memory of the rings made for measurements: room for the floors.
inline constexpr std::size_t kUserBytes = std::size_t{8} << 20;

/// A process beside the ranks, which runs `body` until its owner ends it.
class Companion {
public:
    explicit Companion(const std::function<void()>& body);
    ~Companion();
    Companion(const Companion&) = delete;
    Companion& operator=(const Companion&) = delete;

private:
    pid_t pid_;
};

using Series = std::map<std::string, std::vector<double>>;

/// Room for rank 0's results: named series of numbers.
class Results {
public:
    static constexpr std::size_t kMaxNumbers = std::size_t{1} << 21;
    static constexpr std::size_t kMaxSeries = 1024;

    Results();
    ~Results();
    Results(const Results&) = delete;
    Results& operator=(const Results&) = delete;

    /// Appends a series; called by rank 0.
    void put(const std::string& name, const std::vector<double>& values);
    Series all() const;
    /// Names in the order in which they were put first.
    std::vector<std::string> names() const;

private:
    struct Shared;
    Common<Shared> shared_;
};

struct GroupOptions {
    unsigned ranks = 2;
    std::string link = "direct", layout = "inline", timing, barrier, partition;
    std::string spin;                  ///< RMEM_SPIN
    std::vector<unsigned> processors;  ///< empty: those allowed, in turn
    double deadline_s = 120;
    bool progress = false;  ///< a line on stderr while it runs
};

struct RankContext {
    unsigned rank, ranks;
    std::byte* user;  ///< the user's memory of bank 0, common to all: where the floor is measured
    Results& results;
};

/// Runs `body` on every rank and waits for all.
void run_ranks(const GroupOptions& options, Results& results,
               const std::function<void(RankContext&)>& body);

/// The same for processes that join by themselves, with the group's environment set.
void run_processes(const GroupOptions& options, unsigned processes,
                   const std::function<void(unsigned process, const std::string& ring)>& body);

/// On which a rank is put.
unsigned processor_of(const GroupOptions& options, unsigned rank);

}  // namespace tools
