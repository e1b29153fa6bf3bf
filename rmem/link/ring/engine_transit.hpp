// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The way of a write: from its log to the wire, and from there into the bank, at the wire's time.
///
/// Invariants: nothing arrives before its time. Each log is applied in its order.
/// Progress: await() waits for nothing but what falls due within kAwaitNs, to be in time.

#include "rmem/link/ring/engine_arrival.hpp"
#include "rmem/link/ring/engine_logs.hpp"
#include "rmem/link/ring/engine_members.hpp"
#include "rmem/link/ring/engine_node.hpp"
#include "rmem/link/ring/engine_outward.hpp"
#include "rmem/link/ring/engine_wire.hpp"
#include "rmem/wire/model.hpp"

#include <cstdint>
#include <vector>

namespace rmem {

class RMEM_API EngineTransit {
public:
    static constexpr std::int64_t kAwaitNs = 400;  ///< longer than a waiting rank's poll takes

    EngineTransit(EngineNode& own, EngineWire& wire, const EngineMembers& members, EngineLogs& logs,
                  EngineArrival& arrival, EngineOutward& outward)
        : own_(own),
          wire_(wire),
          members_(members),
          logs_(logs),
          arrival_(arrival),
          outward_(outward) {}

    void restart() {
        come_.assign(own_.ranks, 0);
        holds_ = false;
    }

    /// A record goes under way; its number. It is submitted by itself, or with that.
    std::uint64_t take_up(unsigned rank, const LogReader::Entry& entry);
    void submit(unsigned rank, std::uint64_t number, std::int64_t published_ns);
    void depart(unsigned rank, const LogReader::Entry& entry) {
        const std::int64_t published_ns = own_.time.publication_of(entry.record);
        submit(rank, take_up(rank, entry), published_ns);
    }

    /// Lets come what the model says until then.
    void let_come(std::int64_t until_ns);
    /// Waits until the model's next event is due, but not beyond `end_ns`. False: that, or there is
    /// something new in the logs, for the next run. If an arrival comes soon it waits for that
    /// instead, and stores it: all that leads to the store is done before, so that nothing but the
    /// store is left when its time has come.
    [[nodiscard]] bool await(std::int64_t end_ns);
    /// Applies what has come, in its order, as far as it is not left to its writer, and has not to
    /// wait for others. Flights before `come` come now or never.
    void settle(unsigned rank, std::uint64_t come);
    /// Whether there are flights that have come, and wait for their writer, or for others.
    bool holds() const noexcept { return holds_; }
    void settle_held();
    /// Where nothing moves any more, nothing arrives.
    void drop_if_idle();
    /// When there is something to do again, if nothing more is written; kNever: not before.
    std::int64_t next_due_ns() const noexcept;
    /// Words in the node's transmit FIFO at now().
    std::uint32_t look_at_fifo();

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    [[nodiscard]] bool prepare(EngineArrival::Coming& coming, std::int64_t until_ns) const;
    void advance(std::int64_t until_ns) {
        wire_.model().advance(until_ns, [this](const WireOutcome& o) { on_outcome(o); });
    }
    void on_outcome(const WireOutcome& outcome);

    EngineNode& own_;
    EngineWire& wire_;
    const EngineMembers& members_;
    EngineLogs& logs_;
    EngineArrival& arrival_;
    EngineOutward& outward_;
    std::vector<std::uint64_t> come_;  // of each rank: no flight before this comes any more
    bool holds_ = false;
};

}  // namespace rmem
