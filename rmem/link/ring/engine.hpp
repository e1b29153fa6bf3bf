// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The engine of a node on the `ring` link: the work that a card does by itself.
///
/// It reads the logs of all ranks (rmem/ring/write_log.hpp), lets the wire model say when each
/// write reaches this node, and stores what is due into this node's bank, never early. It raises
/// interrupts, records how punctual it was, and takes dead nodes out of the model's ring.
/// docs/design/ring-link.md tells the whole story.
///
/// Terms
///   flight   a write that was seen in a log and has neither been applied here nor lost
/// Thread safety: any thread of the process may call; one at a time per node gets to run, the
///   others are told so at once. Each process of a node has a RingEngine with a model of its own;
///   the record of what is applied is shared.
/// Invariants: each log is applied in its order. A write is applied at or after the model's time.
/// Progress: run() waits for nothing but what falls due within kAwaitNs, to be in time. Idle it
///   costs a compare-and-swap, a clock and a load for each rank. It allocates only while its queues
///   grow to the load's size.
/// Errors: the constructor throws Error(timed_out) when the engine's holder is stopped. Without
///   memory for its queues run() ends the process: its step could neither be finished nor undone.

#include "rmem/base/relaxed.hpp"
#include "rmem/interrupts.hpp"
#include "rmem/link/ring/engine_lock.hpp"
#include "rmem/link/ring/engine_members.hpp"
#include "rmem/link/ring/engine_node.hpp"
#include "rmem/link/ring/engine_wire.hpp"
#include "rmem/link/ring/race_check.hpp"
#include "rmem/ring.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/bound_violation.hpp"
#include "rmem/ring/word_sleepers.hpp"
#include "rmem/ring/write_log.hpp"
#include "rmem/wire/faults.hpp"
#include "rmem/wire/model.hpp"
#include "rmem/wire/queue.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace rmem {

class RMEM_API RingEngine {
public:
    using ViolationHook = std::function<void(const BoundViolation&)>;
    /// The runner of the engine: only the counting differs.
    enum class Caller { rank, helper };
    static constexpr std::int64_t kAwaitNs = 400;  ///< longer than a waiting rank's poll takes

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
    /// To sleepers: only to nodes whose ranks all sleep in a wait.
    enum class To { all, sleepers };
    bool run_and_deliver(std::uint64_t claimed_from, To to = To::all);
    /// Own writes that fall due while the log is not claimed are remembered for the next claim.
    void set_brings_own(bool on) noexcept { brings_own_.set(on); }

    /// Looks which ranks are alive: a system call for each of some ranks, in turn.
    /// The engine acts on it when it runs next; it looks itself, slower, when nobody else does.
    void look_at_members() noexcept { members_.look(); }

    /// Whether something is known to be on its way to this bank.
    bool busy() const noexcept { return busy_.get(); }
    /// Whether all others' writes come without it (rmem/link/ring/delivery.hpp): then it has to run
    /// now and then only, to look at members.
    bool is_idle() const noexcept;
    /// Writes of others that engines of this node had to apply.
    std::uint64_t brought() const noexcept { return own_.slot.brought.get(); }
    /// How often run() ran.
    std::uint64_t runs() const noexcept { return runs_.get(); }
    /// The sum of the positions that the logs have that this engine applies.
    std::uint64_t written_in_all() const noexcept;
    /// Whether there are writes that this node has not applied, on their way or unread; of others,
    /// if `own` is false.
    bool lacks_writes(bool own = true) const noexcept;
    /// When run() has something to do again, if nothing more is written; kNever: not before.
    std::int64_t next_due_ns() const noexcept { return next_due_ns_.get(); }
    /// Words in this node's transmit FIFO at the last run_for_fifo().
    std::uint32_t fifo_words() const noexcept { return fifo_words_.get(); }

    InterruptBoard& interrupts() noexcept { return interrupts_; }
    const InterruptBoard& interrupts() const noexcept { return interrupts_; }
    const Punctuality& punctuality() const noexcept { return own_.time.punctuality(); }
    /// Called after a run, by the thread that ran, without the engine's lock.
    void on_bound_violation(ViolationHook hook);
    /// In place of a line on stderr; called inside a run: it must not call this object.
    void on_race(RaceChecker::Report report);

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    /// Which logs are this engine's: those of ranks that do not deliver themselves, or all, when a
    /// node is taken in.
    enum class Logs { undelivered, all };

    struct Flight {
        LogReader::Entry entry;
        std::uint64_t before = 0;      ///< position after the record before it
        std::int64_t unseen_ns = 0;    ///< its writer published it that long after its time
        std::int64_t due_ns = kNever;  ///< it has come here, at that time; 0: long ago
        std::int64_t stored_ns = 0;    ///< it was put into the bank then; 0: it was not yet
        bool gone = false;             ///< lost, but something before it is under way
    };
    /// An own write that has come to another node.
    struct Outward {
        unsigned node = 0;
        Flight flight;
    };
    /// The state of a rank's writes on an instant wire.
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
    /// A write that comes to a bank, ready to be stored.
    struct Coming {
        std::int64_t due_ns;
        std::uint64_t tag;
        unsigned node;
        std::size_t offset;
        std::size_t bytes = 0;  ///< none: nothing comes
        bool has_flag = false;
        std::array<std::uint32_t, kMaxRecordWords> words;
    };
    /// One that was stored as soon as it was due, before the model says so.
    struct Stored {
        std::uint64_t tag = 0;
        unsigned node = 0;
        std::int64_t at_ns = 0;  ///< 0: there is none
    };
    using Flights = detail::NumberedRing<Flight>;

    [[nodiscard]] bool run_and_report(Caller caller, bool for_fifo);
    void step(bool for_fifo, Logs logs = Logs::undelivered) noexcept;
    void restart();

    // Input
    void find_news();
    [[nodiscard]] bool has_news(unsigned rank);
    [[nodiscard]] bool has_any_news();
    void pass_quiet(unsigned rank) noexcept;
    void note_idleness() noexcept;
    void want_each_write(bool wants) noexcept;
    void feed();
    bool peek(unsigned rank, LogReader::Entry& entry);
    [[nodiscard]] bool is_in_bank(const LogRecord& record) const noexcept;
    void depart(unsigned rank, const LogReader::Entry& entry);
    Flight& take_up(unsigned rank, const LogReader::Entry& entry);
    void submit(unsigned rank, std::uint64_t number, std::int64_t published_ns);
    void begin_backlog();
    [[nodiscard]] bool add_to_backlog(unsigned rank, const LogReader::Entry& entry);
    void end_backlog();
    void pass_backlog();

    // Output
    [[nodiscard]] bool await(std::int64_t end_ns);
    [[nodiscard]] bool prepare(Coming& coming, std::int64_t until_ns) const;
    [[nodiscard]] std::int64_t take_stored(const WireOutcome& arrival) noexcept;
    void pass_instantly(std::int64_t now);
    void on_outcome(const WireOutcome& outcome);
    void drop_before(unsigned rank, std::uint64_t until);
    void settle(unsigned rank, std::uint64_t come);
    void settle_held();
    bool is_claimed(unsigned rank) const noexcept;
    void note_outward(const Flight& flight, const WireOutcome& outcome);
    void let_come(std::int64_t until_ns);
    void deliver_outward();
    void deliver_come_round(To to);
    std::uint64_t come_round_to() const noexcept;
    [[nodiscard]] bool is_asleep(unsigned node) const noexcept;
    [[nodiscard]] bool has_words_of_users(unsigned node) const noexcept;
    [[nodiscard]] bool deliver(const Outward& write);
    [[nodiscard]] bool is_let_go(const Outward& write) const noexcept;
    void put(const Outward& write, std::uint64_t has);
    bool is_next_of(unsigned node, const Flight& flight) const noexcept;
    void report_violations();
    void drop_if_idle();
    void store(const LogReader& log, const LogReader::Entry& entry, unsigned node);
    void arrive(unsigned rank, const Flight& flight, std::int64_t due_ns);
    std::optional<BoundViolation> note_arrival(unsigned node, unsigned rank, const Flight& flight,
                                               std::int64_t due_ns);
    [[nodiscard]] bool is_awaited(unsigned rank, const LogReader::Entry& entry) const noexcept;
    void come_round(unsigned rank, const LogReader::Entry& entry);
    void wake_node() noexcept;
    std::uint64_t written(unsigned rank) const noexcept;

    void tick(std::int64_t now);
    unsigned rank_count() const noexcept { return own_.ranks; }

    const Membership& member_;
    EngineNode own_;
    EngineWire wire_;
    EngineMembers members_;
    const ApplierUse applier_;
    std::vector<Bank> banks_;  ///< of each node
    EngineLock lock_;
    InterruptBoard interrupts_;
    const WordSleepers sleepers_;
    std::optional<RaceChecker> checker_;

    std::vector<LogReader> logs_;           // of each rank
    std::vector<Flights> flights_;          // of each rank
    std::vector<std::uint64_t> come_;       // of each rank: no flight before this comes any more
    std::vector<std::uint64_t> fed_;        // of each rank: position after the newest flight
    std::vector<std::uint64_t> users_end_;  // of each rank: after the last word of users read here
    std::deque<Outward> outward_;           // not delivered yet, in their order
    std::vector<Held> held_;                // of each rank, where there is no model
    std::vector<Hint<bool>> is_delivered_;  // of each rank: at the last look at all
    std::vector<unsigned> news_;            // ranks with unread records
    std::vector<LogReader::Entry> next_;    // of each rank in news_
    std::vector<Waiting> backlog_;          // in the order of their times
    std::int64_t clear_ns_ = kNever;        // the wire is, then, of all before; kNever: who knows
    std::vector<BoundViolation> violations_;
    ViolationHook hook_;

    std::uint64_t in_flight_ = 0;
    bool brings_ = false;             ///< this run is of the thread that has claimed the own log…
    std::uint64_t claimed_from_ = 0;  ///< …when it ended there
    bool holds_ = false;  ///< flights that have come, and wait for their writer, or for others
    Stored stored_;
    bool applied_any_ = false;  ///< in this run, to the own bank
    bool arrived_any_ = false;  ///< in this run, at any node
    bool lapped_ = false;       ///< a log was reused before we read it

    const bool wants_each_write_;  ///< whether or not there is a hook
    Logs which_logs_ = Logs::undelivered;
    Hint<std::uint32_t> changes_seen_;  ///< DeliveryBoard::changes at the last look at all logs
    Hint<bool> is_idle_;
    Hint<bool> brings_own_;
    Hint<bool> busy_;  ///< who sleeps because of an old value is woken by the writer
    Counter<> runs_;
    Hint<std::int64_t> next_due_ns_;
    Hint<std::uint32_t> fifo_words_;
};

}  // namespace rmem
