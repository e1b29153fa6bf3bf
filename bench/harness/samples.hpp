// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The clock, samples taken within a time, and the line of JSON that tells them. Times in ns.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;  ///< of most systems' messages

[[noreturn]] void fail(const std::string& complaint);
/// Among what is timed: no sentence is made of what is not said.
inline void require(bool fine, const char* what) {
    if (!fine) [[unlikely]]
        fail(what);
}
template <class Why>
void require(bool fine, const char* what, Why&& why) {
    if (!fine) [[unlikely]]
        fail(std::string(what) + ": " + why());
}

/// What can be had once.
struct Unique {
    Unique() = default;
    Unique(const Unique&) = delete;
    Unique& operator=(const Unique&) = delete;
};

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

/// What is measured: a rhythm (steps.hpp), a size, and how many operations belong together.
struct Step {
    std::string rhythm;
    std::size_t bytes = 0, count = 1;
    double seconds = 0;  ///< a slow system takes fewer samples rather than forever
    double more = 0;     ///< of some rhythms
};

using Series = std::vector<double>;
using Numbers = std::vector<std::pair<std::string, double>>;

/// Prints a JSON object: the step, percentiles of the sorted samples by nearest rank, each times
/// `share` and less `less`, and further numbers.
void tell(const Step& step, int ranks, const Series& sorted, double share = 1, double less = 0,
          const Numbers& more = {});

template <class Operation>
void repeat(std::size_t count, Operation&& op) {
    for (std::size_t i = 0; i < count; ++i) op();
}

/// The leader decides chunk by chunk how often, and tells the others by share(word), so that a
/// step takes its time and no more, however busy the machine. Sorted times of one operation out of
/// `length` at a time. Chunks grow until agreeing on them costs nothing.
template <class Share, class Operation>
Series lead(Share&& share, double ns, std::size_t length, Operation&& op) {
    constexpr std::uint64_t kMostSamples = 400'000;
    Series series;
    const double first = now_ns();
    for (std::uint64_t chunk = 1;;) {
        const double start = now_ns();
        std::uint64_t count = std::min(chunk, kMostSamples - series.size());
        if (start - first > ns && !series.empty()) count = 0;
        share(count);
        if (count == 0) break;
        for (std::uint64_t i = 0; i < count; ++i) {
            const double before = now_ns();
            repeat(length, op);
            series.push_back((now_ns() - before) / static_cast<double>(length));
        }
        if (now_ns() - start < ns / 32) chunk *= 2;
    }
    std::sort(series.begin(), series.end());
    return series;
}

template <class Share, class Operation>
void follow(Share&& share, std::size_t length, Operation&& op) {
    for (std::uint64_t count = 0; share(count), count > 0;) repeat(count * length, op);
}

/// Every receiver that is handed a pointer looks at one word of each line, so that it also pays for
/// moving the data; the sum shows that the message is the one that was sent.
inline std::uint64_t look_at(const void* data, std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < size; at += kCacheLine) {
        std::uint64_t word = 0;
        std::memcpy(&word, static_cast<const std::byte*>(data) + at,
                    std::min(sizeof word, size - at));
        sum += word;
    }
    return sum;
}

}  // namespace bench
