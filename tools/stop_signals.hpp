// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Lets a command that runs until it is told to end finish properly: SIGINT, SIGTERM and SIGHUP
/// only set a flag, and interrupt a call that waits. The second one ends the process as usual.
/// Invariant, executed: there is one object at a time in a process.
/// Thread safety: one thread.

#include <poll.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <span>

namespace tools {

class StopSignals {
public:
    StopSignals();
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// The signal that came, or 0.
    int signal() const noexcept;
    /// Takes a signal that has come. For a command that has no time to wait: a system call.
    void look() const noexcept;
    /// Sleeps until that time of CLOCK_MONOTONIC, or until a signal comes.
    void sleep_until(std::int64_t at_ns) const noexcept;
    /// Sleeps until the descriptor can be read (or has ended). False if a signal came instead.
    bool wait_readable(int fd) const noexcept;
    /// The same until that time of CLOCK_MONOTONIC at the latest; false if it has come.
    bool wait_readable_until(int fd, std::int64_t at_ns) const noexcept;
    /// The same for several descriptors, and for what each entry asks.
    bool wait(std::span<pollfd> wanted, std::int64_t at_ns) const noexcept;

private:
    std::array<struct sigaction, 3> before_{};
    sigset_t mask_{};  ///< of this thread, outside of waiting
};

}  // namespace tools
