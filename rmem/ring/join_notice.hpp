// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a person at a terminal is told when opening waits for others: once, after some seconds of
/// silence.
///
/// Nobody else is: where stderr is a file or a pipe, and in a simulated process, it says nothing.
/// Thread safety: one thread.

#include "rmem/error.hpp"

#include <cstdint>
#include <string>

namespace rmem {

class RMEM_API JoinNotice {
public:
    static constexpr std::int64_t kAfterNs = 3'000'000'000;

    /// Waiting begins now; `descriptor` is where people would read it.
    explicit JoinNotice(std::int64_t now_ns, int descriptor = 2);

    /// Whether it is time to tell. True once at most.
    [[nodiscard]] bool is_due(std::int64_t now_ns) noexcept;
    /// `missing` names ranks or nodes.
    void tell(unsigned rank, const std::string& ring, const std::string& missing) const noexcept;

private:
    const int descriptor_;
    std::int64_t due_ns_;  ///< the greatest number: never
};

}  // namespace rmem
