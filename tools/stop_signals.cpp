// SPDX-License-Identifier: Apache-2.0
#include "tools/stop_signals.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace tools {

namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t g_signal = 0;
bool g_is_taken = false;

void note(int number) {
    g_signal = number;
}

timespec left_until(std::int64_t at_ns) {
    const std::int64_t left = std::max<std::int64_t>(at_ns - rmem::now_ns(), 0);
    return {left / rmem::kNsPerSecond, left % rmem::kNsPerSecond};
}

}  // namespace

// The signals are blocked but while the command waits, so that none comes between a look at
// signal() and the waiting. Threads that are started later have them blocked as well.

StopSignals::StopSignals() {
    RMEM_CHECK(!g_is_taken);
    g_is_taken = true;
    g_signal = 0;
    sigset_t stopping;
    ::sigemptyset(&stopping);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        struct sigaction action {};
        action.sa_handler = note;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        ::sigaction(kSignals[i], &action, &before_[i]);
        ::sigaddset(&stopping, kSignals[i]);
    }
    ::pthread_sigmask(SIG_BLOCK, &stopping, &mask_);
}

StopSignals::~StopSignals() {
    g_is_taken = false;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        ::sigaction(kSignals[i], &before_[i], nullptr);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

int StopSignals::signal() const noexcept {
    return g_signal;
}

void StopSignals::look() const noexcept {
    const timespec at_once{};
    ::ppoll(nullptr, 0, &at_once, &mask_);
}

void StopSignals::sleep_until(std::int64_t at_ns) const noexcept {
    const timespec time = left_until(at_ns);
    ::ppoll(nullptr, 0, &time, &mask_);
}

bool StopSignals::wait_readable(int fd) const noexcept {
    pollfd wanted = {fd, POLLIN, 0};
    return ::ppoll(&wanted, 1, nullptr, &mask_) > 0;
}

bool StopSignals::wait_readable_until(int fd, std::int64_t at_ns) const noexcept {
    pollfd wanted = {fd, POLLIN, 0};
    return wait({&wanted, 1}, at_ns);
}

bool StopSignals::wait(std::span<pollfd> wanted, std::int64_t at_ns) const noexcept {
    const timespec time = left_until(at_ns);
    return ::ppoll(wanted.data(), wanted.size(), &time, &mask_) > 0;
}

}  // namespace tools
