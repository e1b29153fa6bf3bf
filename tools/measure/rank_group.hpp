// SPDX-License-Identifier: Apache-2.0
#pragma once

/// N ranks of one ring as forked processes, for measurements.
///
/// Each child joins by bbp_init, as any program does, and runs the body; rank 0's body records
/// results in memory shared with the parent. Children are pinned to the processors given, in turn.
/// Errors: `rmem::Error` when a rank fails (its sentence) or does not end in time; then all are
/// ended.
/// Thread safety: fork() is called: use it before there are threads.

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

namespace bench {

/// The user's memory of the rings made for measurements: room for the floors.
inline constexpr std::size_t kUserBytes = std::size_t{8} << 20;

/// Memory of this process and all that it starts from then on: zeros. Errors: `rmem::Error`.
void* map_common(std::size_t bytes);
void unmap_common(void* at, std::size_t bytes) noexcept;

/// One T that these have in common.
template <class T>
class Common {
public:
    Common() : it_(new (map_common(sizeof(T))) T) {}
    ~Common() { unmap_common(it_, sizeof(T)); }
    Common(const Common&) = delete;
    Common& operator=(const Common&) = delete;

    T& operator*() const noexcept { return *it_; }
    T* operator->() const noexcept { return it_; }

private:
    T* it_;
};

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
    std::map<std::string, std::vector<double>> all() const;
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
void run_processes(const GroupOptions& options, unsigned processes, Results& results,
                   const std::function<void(unsigned process, const std::string& ring)>& body);

/// Those that this process may run on.
std::vector<unsigned> allowed_processors();

/// On which a rank is put.
unsigned processor_of(const GroupOptions& options, unsigned rank);

/// This process; unpinned is slower, not wrong.
void pin_to(unsigned processor);

/// Throws what bbp_last_error says when `result` is a failure; gives it back otherwise.
int checked(int result);

}  // namespace bench
