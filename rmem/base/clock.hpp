// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The host's clock, at the edges only: protocol cores take the time as an argument.
/// Units: nanoseconds of CLOCK_MONOTONIC, which all processes of a host share.

#include "rmem/base/time.hpp"
#include "rmem/error.hpp"

#include <cstdint>
#include <ctime>
#include <limits>

namespace rmem {

inline std::int64_t now_ns() noexcept {
    timespec t;
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * kNsPerSecond + t.tv_nsec;
}

/// The clock of the program that asks: the host's, but in a simulated process its own
/// (rmem/base/program_host.hpp). Deadlines of programs are times of this clock.
RMEM_API std::int64_t program_now_ns() noexcept;

/// A point in time after which a call gives up.
struct Deadline {
    std::int64_t at_ns = kNever;

    static Deadline never() noexcept { return {}; }
    static Deadline now() noexcept { return {std::numeric_limits<std::int64_t>::min()}; }
    static Deadline in(std::int64_t ns) noexcept {
        return ns <= 0 ? now() : after(program_now_ns(), ns);
    }
    /// `ns` after `start_ns`, which is not negative.
    static Deadline after(std::int64_t start_ns, std::int64_t ns) noexcept {
        return ns > kNever - start_ns ? never() : Deadline{start_ns + ns};
    }
    bool is_never() const noexcept { return at_ns == kNever; }
    [[nodiscard]] bool passed(std::int64_t now) const noexcept { return now >= at_ns; }
};

}  // namespace rmem
