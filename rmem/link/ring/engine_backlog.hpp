// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What was written while an engine did not run, and must have come round before something else was
/// written.
///
/// Many programs on few processors find that at each turn, and each would compute all of the wire
/// for it: the model's work for a write grows with the nodes, as does the number of models.
/// Invariants: between end() and begin() nothing is in it.

#include "rmem/base/time.hpp"
#include "rmem/link/ring/engine_transit.hpp"

#include <cstdint>
#include <vector>

namespace rmem {

class EngineBacklog {
public:
    EngineBacklog(EngineNode& own, EngineWire& wire, EngineLogs& logs, EngineTransit& transit)
        : own_(own), wire_(wire), logs_(logs), transit_(transit) {}

    /// A turn of records begins. `is_watched`: a watcher wants to know when each write came.
    void begin(bool is_watched);
    /// The next record, in the order of their times. False: nothing is known of the wire, or a
    /// fault makes it late.
    [[nodiscard]] bool add(unsigned rank, const LogReader::Entry& entry);
    void end();

private:
    /// A flight that no model was told of yet.
    struct Waiting {
        unsigned rank;
        std::uint64_t number;
        std::int64_t published_ns;
    };

    void pass();

    EngineNode& own_;
    EngineWire& wire_;
    EngineLogs& logs_;
    EngineTransit& transit_;
    std::vector<Waiting> waiting_;    // in the order of their times
    std::int64_t clear_ns_ = kNever;  // the wire is, then, of all before; kNever: who knows
};

}  // namespace rmem
