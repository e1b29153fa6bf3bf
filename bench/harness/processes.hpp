// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ranks of a system as forked processes, and what their runner tells them by the environment.
///
/// BENCH_STEPS     a directory with a FIFO for each rank, which says the steps; else they are the
///                 program's arguments, in quotes
/// BENCH_CPUS      rank r runs on number r modulo their count; "any": nobody is pinned
/// BENCH_RANKS     how many
/// BENCH_VARIANT   of the system, where it has some
/// BENCH_SPACES    the network namespaces of ranks 0 and 1; BENCH_ADDRESSES, BENCH_INTERFACE

#include "bench/harness/samples.hpp"

#include <sched.h>
#include <unistd.h>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace bench {

std::string setting(const char* name, const std::string& otherwise);

/// A process's copy of what its runner has said.
struct Setup {
    std::vector<int> cpus;
    int ranks = 2;
    std::string variant, interface;
    std::vector<std::string> spaces, addresses;
    std::vector<std::string> steps;  ///< of the command line

    static Setup read(int argc, char** argv);
    /// Puts this process on its rank's processor; on its rank's host, a network namespace.
    void pin(int rank) const;
    void enter_host(int rank) const;
    /// The same in all ranks, hardly another program's: to be asked before they part.
    static std::uint16_t some_port() { return std::uint16_t(10'000 + getpid() % 20'000); }
};

/// The steps of a rank, one after the other. Before each one the alarm is set again.
class StepSource {
public:
    StepSource(const Setup& setup, int rank);
    std::optional<Step> next();

private:
    std::vector<std::string> given_;
    std::size_t taken_ = 0;
    std::ifstream lines_;
};

/// Zeroed, touched, of this process and those that it forks, and gone with the last of them.
void* shared_memory(std::size_t bytes);
template <class T>
T* shared(std::size_t count = 1) {
    return new (shared_memory(count * sizeof(T))) T[count];
}

/// Where the ranks meet, beside their channel: before it exists and when it has gone, to exchange
/// addresses, and to hear how often the leader goes on.
class Meeting {
public:
    explicit Meeting(int ranks) : ranks_(ranks) {}
    /// `poll` is called meanwhile.
    using Poll = std::function<void()>;
    void wait_for_others(int rank, const Poll& poll = {});
    /// Rank 0's word for all.
    void share(int rank, std::uint64_t& word, const Poll& poll = {});
    /// Of two ranks: gives `mine` to the other one and returns what it gave.
    std::string exchange(int rank, const std::string& mine);

private:
    static constexpr std::size_t kLetterBytes = 8192, kMostRanks = 256;
    int ranks_;
    std::atomic<std::uint32_t> arrived_[kMostRanks]{};
    std::uint64_t word_ = 0;
    std::size_t length_[2]{};
    char letter_[2][kLetterBytes]{};
};

/// The name of a socket file of this run, gone with rank 0: to be asked before the ranks part.
std::string scratch_file(const std::string& name);

/// A system that this host cannot have at all: said by a status of its own.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};
inline constexpr int kUnavailable = 77;

/// To be defined by each system: its main(), which returns the exit status. Complaints that it
/// throws become one line.
int measure(const Setup& setup);

/// As many processes, each on its host: this one is rank 0, of which the others are children that
/// end with it. Returns the rank. One that ends before all may leave ends them all.
int fork_ranks(const Setup& setup);
void let_leave();
/// Of rank 0, when all have left: its exit status.
int end_ranks(int rank);

}  // namespace bench
