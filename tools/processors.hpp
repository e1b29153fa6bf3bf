// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The processors that this process may use, by number, and those that it is to run on. For all
/// that start processes and measure: nothing has to be linked for it.
/// Thread safety: of the calling thread.

#include <sched.h>

#include <vector>

namespace tools {

inline std::vector<unsigned> usable_processors() {
    std::vector<unsigned> numbers;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
    for (unsigned i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &set)) numbers.push_back(i);
    }
    return numbers;
}

/// False: it may not run there, and goes on where it was. Allocates nothing.
inline bool bind_to(const std::vector<unsigned>& processors) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const unsigned processor : processors) CPU_SET(processor, &set);
    return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace tools
