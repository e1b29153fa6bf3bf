// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The floor that figures of messages are compared with, and the work between two messages.
///
/// Threads: each object is one rank's.

#include "rmem/base/clock.hpp"
#include "rmem/base/random.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tools {

/// ns of this many operations.
template <class Operation>
double time_of(std::size_t times, Operation&& operation) {
    const std::int64_t start = rmem::now_ns();
    for (std::size_t i = 0; i < times; ++i) operation();
    return static_cast<double>(rmem::now_ns() - start);
}

/// Copies that no compiler leaves out.
inline void copy_memory(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    asm volatile("" : : "r"(to) : "memory");
}

/// Random work between receiving and sending.
class Thinking {
public:
    Thinking(double most_ns, unsigned rank) : random_(rank) {
        if (most_ns == 0) return;
        constexpr std::uint32_t kTrial = 1'000'000;
        const double step_ns = time_of(1, [] { work(kTrial); }) / kTrial;
        most_ = static_cast<std::uint32_t>(most_ns / step_ns);
    }
    void operator()() {
        if (most_ != 0) work(static_cast<std::uint32_t>(random_.below(most_ + 1)));
    }

private:
    static void work(std::uint32_t steps) {
        for (std::uint32_t i = 0; i < steps; ++i) asm volatile("" : "+r"(i));
    }

    std::uint32_t most_ = 0;
    rmem::Random random_;
};

/// One cache line of the ring's own segment that goes to and fro between ranks 0 and 1. Counts go
/// on from one batch to the next, since nothing resets them.
class Floor {
public:
    Floor(std::byte* user, unsigned rank, double think_ns = 0)
        : ball_(*reinterpret_cast<std::atomic<std::uint32_t>*>(user)),
          rank_(rank),
          thinking_(think_ns, rank) {}

    /// One round trip; ranks other than 0 and 1 take no part.
    void bounce() {
        if (rank_ > 1) return;
        if (rank_ == 0) post();
        const std::uint32_t awaited = last_ + 1;
        // (1) - this acquire-load synchronizes-with the release-store (2)
        while (ball_.load(std::memory_order_acquire) != awaited) rmem::cpu_relax();
        last_ = awaited;
        if (rank_ == 1) post();
    }

private:
    void post() {
        thinking_();
        // (2) - this release-store synchronizes-with the acquire-load (1)
        ball_.store(++last_, std::memory_order_release);
    }

    std::atomic<std::uint32_t>& ball_;
    unsigned rank_;
    std::uint32_t last_ = 0;
    Thinking thinking_;
};

}  // namespace tools
