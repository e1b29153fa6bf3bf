// SPDX-License-Identifier: Apache-2.0
//
// What all figures and rhythms are made of: the options, the clock, samples taken within a budget
// of time, and the JSON lines that tell them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include <cerrno>
#include <ctime>

namespace rivals {

inline constexpr std::size_t cache_line = 64;
inline constexpr std::size_t batch_length = 100;
inline constexpr double few_batches = 8;
inline constexpr std::size_t stream_bytes = std::size_t{1} << 20;
inline constexpr std::size_t stream_window = 32;

struct Options {
    std::array<int, 2> cpus{0, 1};
    std::uint64_t samples = 100'000;
    std::uint64_t warmup = 10'000;
    double seconds = 2.0;  // per figure: a slow system takes fewer samples rather than forever
    unsigned deadline = 120;
    int ranks = 2;          // of systems that bring no launcher and have a barrier of more than two
    std::size_t bytes = 8;  // of a ping-pong's message
    std::vector<std::string> figures{"pingpong", "barrier", "stream"};
    std::size_t message_bytes = stream_bytes;  // of a stream's message, at most stream_bytes
    std::size_t window = stream_window;        // messages of a stream per acknowledgement
    // Of systems that use the network: where rank 0 and rank 1 are.
    std::array<std::string, 2> spaces;  // network namespaces; empty: this one
    std::array<std::string, 2> addresses{"127.0.0.1", "127.0.0.1"};
    std::string interface = "lo";
    std::string steps;  // rhythms.hpp: a directory of FIFOs that say what to measure

    bool wants(const std::string& figure) const {
        return std::find(figures.begin(), figures.end(), figure) != figures.end();
    }
};

Options parse_options(int argc, char** argv, const char* about);

struct System {
    std::string name;
    std::string version;
};

inline void require(bool condition, const std::string& complaint) {
    if (!condition) throw std::runtime_error(complaint);
}

// --- processor and clock -----------------------------------------------------------------------

inline void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(std::size_t(cpu), &set);
    require(sched_setaffinity(0, sizeof set, &set) == 0,
            "cannot pin to CPU " + std::to_string(cpu));
}

/// Puts this process on the host of the rank, which is a network namespace.
inline void enter_host(const Options& options, int rank) {
    const std::string& space = options.spaces[std::size_t(rank % 2)];
    if (space.empty()) return;
    const int file = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
    require(file >= 0 && setns(file, CLONE_NEWNET) == 0,
            "cannot enter network namespace " + space + ": " + std::strerror(errno));
    close(file);
}

/// To be called before the processes part: the same in both, hardly another program's.
inline std::uint16_t some_port() {
    return std::uint16_t(10'000 + getpid() % 20'000);
}

inline double now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

// --- samples -----------------------------------------------------------------------------------

using Series = std::vector<double>;

/// The smallest sample that at least `quantile` of all samples do not exceed (nearest rank).
inline double nearest_rank(const Series& sorted, double quantile) {
    const auto rank = static_cast<std::size_t>(std::ceil(quantile * double(sorted.size())));
    return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// --- report ------------------------------------------------------------------------------------

struct Figure {
    const char* name;
    std::size_t bytes;
    int ranks;
    double share = 1.0;  // of an operation's time that is reported: half of a round trip
};

inline void print_number(const char* name, double value) {
    std::printf(",\"%s\":%.1f", name, value);
}

/// What every line tells, whichever program's: which figure, and its samples.
inline void print_samples(const Figure& figure, const Series& samples) {
    std::printf("\"figure\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"samples\":%zu", figure.name,
                figure.bytes, figure.ranks, samples.size());
    constexpr std::pair<const char*, double> told[] = {{"p10_ns", 0.1},    {"p50_ns", 0.5},
                                                       {"p90_ns", 0.9},    {"p99_ns", 0.99},
                                                       {"p999_ns", 0.999}, {"max_ns", 1.0}};
    for (const auto& [name, quantile] : told)
        print_number(name, nearest_rank(samples, quantile) * figure.share);
}

inline void print_rate(const Figure& figure, const Series& samples) {
    print_number("mb_per_s",
                 double(figure.bytes) * 1e3 / (nearest_rank(samples, 0.5) * figure.share));
}

inline void print_end() {
    std::printf("}\n");
    std::fflush(stdout);
}

// --- how often: the leader decides chunk by chunk and tells the others, so that a figure takes its
// --- time and no more, however busy the machine -------------------------------------------------

struct Budget {
    std::uint64_t samples;
    double ns;
};

/// The time of a figure's warm-up, of its single and of its batched samples.
inline Budget budget(const Options& options, std::uint64_t samples, double share_of_time) {
    return {samples, options.seconds * share_of_time * 1e9};
}

template <class Channel>
void share(Channel& channel, bool leader, std::uint64_t& word) {
    if constexpr (requires { channel.share(&word, sizeof word); })
        channel.share(&word, sizeof word);
    else if (leader)
        channel.send(&word, sizeof word);
    else
        channel.receive(&word, sizeof word);
}

template <class Operation>
void repeat(std::uint64_t count, Operation&& op) {
    for (std::uint64_t i = 0; i < count; ++i) op();
}

template <class Channel, class Operation>
void follow(Channel& channel, std::size_t length, Operation&& op) {
    for (std::uint64_t count = 0; share(channel, false, count), count > 0;)
        repeat(count * length, op);
}

/// Sorted times of one operation out of `length` at a time, within the budget. Chunks grow until
/// agreeing on them costs nothing.
template <class Channel, class Operation>
Series lead(Channel& channel, Budget budget, std::size_t length, Operation&& op) {
    Series series;
    const double first = now_ns();
    for (std::uint64_t chunk = 1;;) {
        const double start = now_ns();
        std::uint64_t count = std::min<std::uint64_t>(chunk, budget.samples - series.size());
        if (start - first > budget.ns) count = 0;
        share(channel, true, count);
        if (count == 0) break;
        for (std::uint64_t i = 0; i < count; ++i) {
            const double before = now_ns();
            repeat(length, op);
            series.push_back((now_ns() - before) / double(length));
        }
        if (now_ns() - start < budget.ns / 32) chunk *= 2;
    }
    std::sort(series.begin(), series.end());
    return series;
}

/// Every receiver looks at one word of each line, so that a system which hands over a pointer also
/// pays for moving the data; the sum shows that the message is the one that was sent.
inline std::uint64_t look_at(const void* data, std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < size; at += cache_line) {
        std::uint64_t word = 0;
        std::memcpy(&word, static_cast<const std::byte*>(data) + at,
                    std::min(sizeof word, size - at));
        sum += word;
    }
    return sum;
}

struct Message {
    std::vector<std::byte> bytes;
    std::uint64_t sum = 0;

    explicit Message(std::size_t size) : bytes(size) {
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 + i / 256);
        sum = look_at(bytes.data(), bytes.size());
    }
};

}  // namespace rivals
