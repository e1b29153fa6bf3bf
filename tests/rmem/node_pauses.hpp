// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Pauses of ranks, simulated or not, so that others are in any stage of waiting; and waiting
/// without a call of the library, which could bring a write late to a rank that waits for it.

#include "rmem/base/random.hpp"
#include "rmem/node.hpp"
#include "rmem/sim/world.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

namespace rmem::test {

inline constexpr std::int64_t kUntoldNs = 20'000'000'000;

inline void pause(std::int64_t ns) {
    if (sim::Process* process = sim::current_process()) return process->sleep(ns + 1);
    if (ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

/// From none to 2 ms, the short ones more often.
inline std::int64_t any_pause(std::uint64_t& state) {
    return static_cast<std::int64_t>((next_random(state) % 2'000'000) >> (next_random(state) % 12));
}

/// Whether it holds within kUntoldNs.
inline bool is_told(const std::function<bool()>& holds) {
    const Deadline deadline = Deadline::in(kUntoldNs);
    while (!holds()) {
        if (deadline.passed(program_now_ns())) return false;
        pause(10'000);
    }
    return true;
}

}  // namespace rmem::test
