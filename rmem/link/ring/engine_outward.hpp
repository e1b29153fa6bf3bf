// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The own writes of a rank that waits until they are due, and brings them to the other nodes.
///
/// docs/design/ring-link.md, "programs that do not run their engines", has the rules. The rank has
/// claimed its log (rmem/link/ring/delivery.hpp) while begin() to end() run; what falls due between
/// claims is kept for the next one.
/// Invariants: of a node only what follows what it has of the log is brought to it.

#include "rmem/base/relaxed.hpp"
#include "rmem/link/ring/engine_arrival.hpp"
#include "rmem/link/ring/engine_logs.hpp"
#include "rmem/link/ring/engine_members.hpp"
#include "rmem/link/ring/engine_node.hpp"
#include "rmem/wire/model.hpp"

#include <cstdint>
#include <deque>

namespace rmem {

class RMEM_API EngineOutward {
public:
    /// To sleepers: only to nodes whose ranks all sleep in a wait.
    enum class To { all, sleepers };

    EngineOutward(EngineNode& own, const EngineMembers& members, const EngineLogs& logs,
                  EngineArrival& arrival)
        : own_(own), members_(members), logs_(logs), arrival_(arrival) {}

    void restart() noexcept { waiting_.clear(); }
    /// This run is of the thread that has claimed the own log, when it ended there.
    void begin(std::uint64_t claimed_from);
    void end(To to);
    bool brings() const noexcept { return brings_; }
    /// What falls due while the log is not claimed is remembered, too. By any thread.
    void set_brings_own(bool on) noexcept { brings_own_.set(on); }

    /// An own write has come to another node.
    void note(const Flight& flight, const WireOutcome& outcome);
    /// Whether a node has all that comes before this own write, and not the write.
    bool is_next_of(unsigned node, const Flight& flight) const noexcept;

private:
    struct Write {
        unsigned node = 0;
        Flight flight;
    };

    void bring_come_round(To to);
    std::uint64_t come_round_to() const noexcept;
    bool is_asleep(unsigned node) const noexcept;
    bool has_words_of_users(unsigned node) const noexcept;
    bool is_let_go(unsigned node, const Flight& flight) const noexcept;
    [[nodiscard]] bool bring(const Write& write);
    void put(const Write& write, std::uint64_t has);

    EngineNode& own_;
    const EngineMembers& members_;
    const EngineLogs& logs_;
    EngineArrival& arrival_;
    std::deque<Write> waiting_;  // not brought yet, in their order
    bool brings_ = false;
    std::uint64_t claimed_from_ = 0;
    Hint<bool> brings_own_;
};

}  // namespace rmem
