// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ranks of a system as forked processes that take steps (tools/measure/rhythms.hpp), and what
/// their runner tells them by the environment. Times in ns.
///
/// BENCH_STEPS     a directory with a FIFO for each rank, which says the steps; else they are the
///                 program's arguments, in quotes
/// BENCH_CPUS      rank r runs on number r modulo their count; "any": nobody is pinned
/// BENCH_RANKS     how many
/// BENCH_VARIANT   of the system, where it has some
/// BENCH_SPACES    the network namespaces of ranks 0 and 1; BENCH_ADDRESSES, BENCH_INTERFACE

#include "tools/measure/rhythms.hpp"

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench {

using rmem::cpu_relax, rmem::kLineBytes, rmem::now_ns;
using tools::Common, tools::fail, tools::kMaxBytes, tools::look_at, tools::Meeting, tools::repeat,
    tools::require, tools::Step, tools::Times;

/// What can be had once.
struct Unique {
    Unique() = default;
    Unique(const Unique&) = delete;
    Unique& operator=(const Unique&) = delete;
};

std::string setting(const char* name, const std::string& otherwise);

/// A process's copy of what its runner has said.
struct Setup {
    std::vector<unsigned> cpus;
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

using Numbers = std::vector<std::pair<std::string, double>>;

/// Prints a JSON object: the step, percentiles of the sorted samples by nearest rank, each times
/// `part` and less `less`, and further numbers.
void tell(const Step& step, int ranks, const Times& sorted, double part = 1, double less = 0,
          const Numbers& more = {});

/// Samples within a step's time (a Sampler, tools/measure/rhythms.hpp): the leader decides chunk by
/// chunk how often, and tells the others beside what is timed, so that a step takes its time and no
/// more, however busy the machine. Chunks grow until agreeing on them costs nothing.
template <class Channel>
class InTime {
public:
    static constexpr bool kRepeats = true, kProves = true;

    /// `meeting` may be null where the channel shares words.
    InTime(Channel& channel, int rank, int ranks, Meeting* meeting)
        : channel_(channel), rank_(rank), ranks_(ranks), meeting_(meeting) {}

    /// Warm-up, then samples.
    template <class Operation>
    Times samples(const Step& step, std::size_t length, Operation&& op) {
        const auto sharing = [this](std::uint64_t& word) { share(word); };
        Times found;
        for (const double part : {0.15, 0.85}) {
            if (rank_ == 0)
                found = lead(sharing, step.seconds * part * 1e9, length, op);
            else
                for (std::uint64_t count = 0; share(count), count > 0;) repeat(count * length, op);
        }
        return found;
    }
    template <class Operation>
    static Times alone(const Step& step, std::size_t length, Operation&& op) {
        return lead([](std::uint64_t&) {}, step.seconds * 1e9, length, op);
    }
    void share(std::uint64_t& word) {
        if constexpr (requires { channel_.share(word); })
            channel_.share(word);
        else
            meeting_->share(rank_, word);
    }
    void tell(const Step& step, const Times& sorted, double part, double less) {
        if constexpr (requires { channel_.news(); })  // Numbers, told with each step
            bench::tell(step, ranks_, sorted, part, less, channel_.news());
        else
            bench::tell(step, ranks_, sorted, part, less);
    }
    Meeting* meeting() const { return meeting_; }

private:
    template <class Share, class Operation>
    static Times lead(Share&& share, double ns, std::size_t length, Operation&& op) {
        constexpr std::uint64_t kMaxSamples = 400'000;
        Times times;
        const auto first = now_ns();
        for (std::uint64_t chunk = 1;;) {
            const auto start = now_ns();
            std::uint64_t count = std::min(chunk, kMaxSamples - times.size());
            if (double(start - first) > ns && !times.empty()) count = 0;
            share(count);
            if (count == 0) break;
            for (std::uint64_t i = 0; i < count; ++i)
                times.push_back(tools::time_of(length, op) / double(length));
            if (double(now_ns() - start) < ns / 32) chunk *= 2;
        }
        std::sort(times.begin(), times.end());
        return times;
    }

    Channel& channel_;
    int rank_, ranks_;
    Meeting* meeting_;
};

/// First of all, that it has begun.
template <class Channel>
void take_steps(const Setup& setup, Channel& channel, int rank, int ranks, Meeting* meeting,
                double start_ns) {
    if (rank == 0) {
        std::printf(
            "{\"rhythm\":\"start\",\"bytes\":0,\"count\":1,\"ranks\":%d,"
            "\"version\":\"%s\",\"p50_ns\":%.0f}\n",
            ranks, BENCH_VERSION, start_ns);
        std::fflush(stdout);
    }
    InTime sampler(channel, rank, ranks, meeting);
    tools::Rhythms rhythms(channel, rank, ranks, sampler);
    StepSource source(setup, rank);
    while (const auto step = source.next()) rhythms.take(*step);
}

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

/// When a rank is put on its processor: before threads begin that are to share it, or when it has
/// joined, since a ring asks on which processors its ranks may run.
enum class Pinned { first, when_joined };

/// Builds each rank's channel with make(rank, meeting), and takes the steps. Returns the exit
/// status.
template <class Make>
int measure_ranks(const Setup& setup, Make&& make, Pinned pinned = Pinned::first) {
    const Common<Meeting> meeting(unsigned(setup.ranks));
    const int rank = fork_ranks(setup);
    if (pinned == Pinned::first) setup.pin(rank);
    const auto began = now_ns();
    {
        auto channel = make(rank, *meeting);
        const auto start = double(now_ns() - began);
        setup.pin(rank);
        meeting->meet();
        take_steps(setup, channel, rank, setup.ranks, &*meeting, start);
        let_leave();
        meeting->meet();
    }
    return end_ranks(rank);
}

}  // namespace bench
