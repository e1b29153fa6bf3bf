// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The way of a write: from its log to the wire, and from there into the bank, at the wire's time.
///
/// A wire that takes no time (profile `none`) has no model: a record in a log is due, unless a
/// fault delays it. Of what was written while an engine did not run, nobody asks the model who need
/// not: many programs on few processors find that at each turn, and each would compute all of the
/// wire for it, while the model's work for a write grows with the nodes, as does the number of
/// models. So what must have come round before something else was written is settled at once.
///
/// Invariants: nothing arrives before its time. Each log is applied in its order, so what is due
/// later holds up what follows it. Between turns no record waits to be submitted.
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

    EngineTransit(EngineNode& own, EngineWire& wire, EngineMembers& members, EngineLogs& logs,
                  EngineArrival& arrival, EngineOutward& outward)
        : own_(own),
          wire_(wire),
          members_(members),
          logs_(logs),
          arrival_(arrival),
          outward_(outward),
          held_(own.config.seats()) {}

    void restart() {
        come_.assign(own_.config.seats(), 0);
        holds_ = false;
    }

    /// A wire that takes no time: applies what is new. When it has something to do again; kNever:
    /// nothing is left.
    std::int64_t pass_at_once();

    /// A turn of records begins. `is_watched`: a watcher wants to know when each write came.
    void begin_turn(bool is_watched);
    /// The next record goes under way, in the order of their times.
    void depart(unsigned rank, const LogReader::Entry& entry);
    void end_turn();

    /// Lets come what the model says until then.
    void let_come(std::int64_t until_ns);
    /// Waits until the model's next event is due, but not beyond `end_ns`. False: that, or there is
    /// something new in the logs, for the next run. If an arrival comes soon it waits for that
    /// instead, and stores it: all that leads to the store is done before, so that nothing but the
    /// store is left when its time has come.
    [[nodiscard]] bool await(std::int64_t end_ns);
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

    /// The state of a rank's writes on a wire that takes no time.
    struct Held {
        std::uint64_t seen_end = 0;     ///< position after the newest record that was seen
        std::int64_t published_ns = 0;  ///< of that record
        std::int64_t due_ns = 0;        ///< of the newest record that was passed on
    };
    /// A flight that no model was told of yet.
    struct Waiting {
        unsigned rank;
        std::uint64_t number;
        std::int64_t published_ns;
    };

    std::int64_t pass_at_once(unsigned rank);
    [[nodiscard]] bool may_wait(std::int64_t published_ns, const LogRecord& record);
    void settle_waiting();
    void submit(const Waiting& write);
    /// Applies what has come, in its order, as far as it is not left to its writer, and has not to
    /// wait for others. Flights before `come` come now or never.
    void settle(unsigned rank, std::uint64_t come);
    [[nodiscard]] bool prepare(EngineArrival::Coming& coming, std::int64_t until_ns) const;
    void advance(std::int64_t until_ns) {
        wire_.model().advance(until_ns, [this](const WireOutcome& o) { on_outcome(o); });
    }
    void on_outcome(const WireOutcome& outcome);

    EngineNode& own_;
    EngineWire& wire_;
    EngineMembers& members_;
    EngineLogs& logs_;
    EngineArrival& arrival_;
    EngineOutward& outward_;
    std::vector<std::uint64_t> come_;  // of each rank: no flight before this comes any more
    bool holds_ = false;
    std::vector<Held> held_;          // of each rank
    std::vector<Waiting> waiting_;    // in the order of their times
    std::int64_t clear_ns_ = kNever;  // the wire is, then, of all before; kNever: it is not known
};

}  // namespace rmem
