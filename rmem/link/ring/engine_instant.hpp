// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A wire that takes no time (profile `none`): a record in a log is due, unless a fault delays it.
///
/// Invariants: each log is applied in its order, so what is due later holds up what follows it.

#include "rmem/link/ring/engine_arrival.hpp"
#include "rmem/link/ring/engine_logs.hpp"
#include "rmem/link/ring/engine_members.hpp"
#include "rmem/link/ring/engine_node.hpp"

#include <cstdint>
#include <vector>

namespace rmem {

class EngineInstant {
public:
    EngineInstant(EngineNode& own, EngineMembers& members, EngineLogs& logs, EngineArrival& arrival)
        : own_(own), members_(members), logs_(logs), arrival_(arrival), held_(own.ranks) {}

    /// Applies what is new. When it has something to do again; kNever: nothing is left.
    std::int64_t pass();

private:
    /// The state of a rank's writes.
    struct Held {
        std::uint64_t seen_end = 0;     ///< position after the newest record that was seen
        std::int64_t published_ns = 0;  ///< of that record
        std::int64_t due_ns = 0;        ///< of the newest record that was passed on
    };

    std::int64_t pass(unsigned rank);

    EngineNode& own_;
    EngineMembers& members_;
    EngineLogs& logs_;
    EngineArrival& arrival_;
    std::vector<Held> held_;  // of each rank
};

}  // namespace rmem
