// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the memory itself costs, as a card program uses it: stores, words to and fro, streams,
/// blocks, interrupts, flushes, frames.
///
/// Method: each case is a ring of its own between fresh processes (some ways of waiting change a
/// node for good), nodes 0 and 1 take part, and all others sleep in wait_change for a word that
/// nobody writes, or where messages are measured in bbp_recv. Beside each quantity stands its
/// floor, measured in the same run: a plain store, a cache line to and fro, a futex to and fro, a
/// datagram to and fro, memcpy. A case ends after its samples or its time, whichever comes first,
/// so that a slow way takes no longer than a fast one.
/// Units: nanoseconds, one way, of one store, word or block, unless a name says otherwise.
/// Errors: as rank_group.hpp.

#include "tools/measure/rank_group.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tools {

struct MemoryPlan {
    std::size_t samples = 20'000;         ///< of each case, at most
    std::int64_t case_ns = 400'000'000;   ///< and for so long
    std::vector<std::string> quantities;  ///< empty: all
    unsigned busy = 0;                    ///< processes that compute meanwhile
    std::size_t most_block = std::size_t{4} << 20;
};

/// Series are named "quantity: case"; that of a floor "quantity: floor, what it is".
void measure_memory(const GroupOptions& options, const MemoryPlan& plan, Results& results);

}  // namespace tools
