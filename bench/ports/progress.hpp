// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rmem/base/clock.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace bench {

/// Says on stderr how far a measurement is, once there was something to wait for. Threads: one.
class Progress {
public:
    explicit Progress(const char* what) : what_(what) {}
    ~Progress() {
        if (is_terminal_ && has_spoken_) fmt::print(stderr, "\r{:70}\r", "");
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void tell(const std::string& step) {
        const std::int64_t now = rmem::now_ns();
        if (now < next_) return;
        next_ = now + (is_terminal_ ? 300'000'000 : 10'000'000'000);
        has_spoken_ = true;
        const std::string line = fmt::format("{}: {}", what_, step);
        if (is_terminal_) {
            fmt::print(stderr, "\r{:70}", line);
        } else {
            fmt::print(stderr, "{}\n", line);
        }
    }

private:
    static constexpr std::int64_t kPatienceNs = 1'000'000'000;
    const char* what_;
    const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
    bool has_spoken_ = false;
    std::int64_t next_ = rmem::now_ns() + kPatienceNs;
};

}  // namespace bench
