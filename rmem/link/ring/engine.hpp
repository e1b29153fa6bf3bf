// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The engine of a node on the `ring` link: the work that a card does by itself.
///
/// It reads the logs of all ranks (rmem/ring/write_log.hpp), lets the wire model say when each
/// write reaches this node, and stores what is due into this node's bank, never early. It raises
/// interrupts, records how punctual it was, and takes dead nodes out of the model's ring.
/// docs/design/ring-link.md tells the whole story.
///
/// It is made of parts, each of which owns its state, and knows only those above it:
///   engine_node.hpp      what all use: the node, what is applied, the time that a run goes by
///   engine_wire.hpp      the model, what it was told, injected faults
///   engine_members.hpp   the node of each rank, and who is alive
///   engine_logs.hpp      what is read of each rank's log, and what of it is under way
///   engine_arrival.hpp   a write that falls due: stored, measured, counted, told of
///   engine_outward.hpp   own writes, brought to other nodes
///   engine_transit.hpp   from the logs through the model to where a write arrives
/// Here is who runs it, and in which order a run does what.
///
/// Thread safety: any thread of the process may call; one at a time per node gets to run, the
///   others are told so at once. Each process of a node has a RingEngine with a model of its own;
///   the record of what is applied is shared.
/// Progress: run() waits for nothing but what falls due within kAwaitNs, to be in time. Idle it
///   costs a compare-and-swap, a clock and a load for each rank. It allocates only while its queues
///   grow to the load's size.
/// Errors: the constructor throws Error(timed_out) when the engine's holder is stopped. Without
///   memory for its queues run() ends the process: its step could neither be finished nor undone.

#include "rmem/base/relaxed.hpp"
#include "rmem/link/ring/engine_arrival.hpp"
#include "rmem/link/ring/engine_lock.hpp"
#include "rmem/link/ring/engine_logs.hpp"
#include "rmem/link/ring/engine_members.hpp"
#include "rmem/link/ring/engine_node.hpp"
#include "rmem/link/ring/engine_outward.hpp"
#include "rmem/link/ring/engine_transit.hpp"
#include "rmem/link/ring/engine_wire.hpp"
#include "rmem/link/ring/race_check.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/wire/faults.hpp"

#include <cstdint>

namespace rmem {

class RMEM_API RingEngine {
public:
    using ViolationHook = EngineArrival::ViolationHook;
    using To = EngineOutward::To;
    /// The runner of the engine: only the counting differs.
    enum class Caller { rank, helper };
    static constexpr std::int64_t kAwaitNs = EngineTransit::kAwaitNs;

    /// Takes the rank into its node (rmem/ring/membership.hpp), so that the bank is up to date.
    /// `sees_each_write`: no rank delivers to this node's bank by itself.
    RingEngine(Membership& member, const FaultPlan& faults, bool check_writers,
               bool sees_each_write = false);
    ~RingEngine();
    RingEngine(const RingEngine&) = delete;
    RingEngine& operator=(const RingEngine&) = delete;

    /// Applies what is due. False when another thread or process of the node is at it.
    bool run(Caller caller = Caller::rank);
    /// The same, and then fifo_words() is up to date.
    bool run_for_fifo();

    /// The same by the thread that has claimed the own rank's log (rmem/link/ring/delivery.hpp),
    /// when it ended at `claimed_from`; it also brings the own writes to the other nodes.
    bool run_and_deliver(std::uint64_t claimed_from, To to = To::all);
    /// Own writes that fall due while the log is not claimed are remembered for the next claim.
    void set_brings_own(bool on) noexcept { outward_.set_brings_own(on); }

    /// Looks which ranks are alive: a system call for each of some ranks, in turn.
    /// The engine acts on it when it runs next; it looks itself, slower, when nobody else does.
    void look_at_members() noexcept { members_.look(); }

    /// Whether something is known to be on its way to this bank.
    bool busy() const noexcept { return busy_.get(); }
    /// Whether all others' writes come without it (rmem/link/ring/delivery.hpp): then it has to run
    /// now and then only, to look at members.
    bool is_idle() const noexcept { return logs_.is_idle(); }
    /// Writes of others that engines of this node had to apply.
    std::uint64_t brought() const noexcept { return own_.slot.brought.get(); }
    /// When the node's engine ran last, in whatever process.
    std::int64_t ran_ns() const noexcept {
        // relaxed is enough: a look that comes a little later is soon enough
        return own_.slot.engine_ran_ns.load(std::memory_order_relaxed);
    }
    /// The sum of the positions that the logs have that this engine applies.
    std::uint64_t written_in_all() const noexcept { return logs_.written_in_all(); }
    /// Whether there are writes that this node has not applied, on their way or unread; of others,
    /// if `own` is false.
    bool lacks_writes(bool own = true) const noexcept { return logs_.lacks_writes(own); }
    /// When run() has something to do again, if nothing more is written; kNever: not before.
    std::int64_t next_due_ns() const noexcept { return next_due_ns_.get(); }
    /// Words in this node's transmit FIFO at the last run_for_fifo().
    std::uint32_t fifo_words() const noexcept { return fifo_words_.get(); }

    InterruptBoard& interrupts() noexcept { return arrival_.interrupts(); }
    const InterruptBoard& interrupts() const noexcept { return arrival_.interrupts(); }
    const Punctuality& punctuality() const noexcept { return own_.time.punctuality(); }
    /// Called after a run, by the thread that ran, without the engine's lock.
    void on_bound_violation(ViolationHook hook);
    /// In place of a line on stderr; called inside a run: it must not call this object.
    void on_race(RaceChecker::Report report);

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    [[nodiscard]] bool run_and_report(Caller caller, bool for_fifo);
    void step(bool for_fifo, EngineLogs::Which logs = EngineLogs::Which::undelivered) noexcept;
    void pass_by_wire(bool for_fifo);
    void restart();
    void want_each_write(bool wants) noexcept;
    void report_violations();

    const Membership& member_;
    EngineNode own_;
    EngineLock lock_;
    EngineWire wire_;
    EngineMembers members_;
    EngineLogs logs_;
    EngineArrival arrival_;
    EngineOutward outward_;
    EngineTransit transit_;

    const bool wants_each_write_;  ///< whether or not there is a hook
    Hint<bool> busy_;              ///< who sleeps because of an old value is woken by the writer
    Hint<std::int64_t> next_due_ns_;
    Hint<std::uint32_t> fifo_words_;
};

}  // namespace rmem
