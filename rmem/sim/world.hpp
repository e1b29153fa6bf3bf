// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring of simulated hosts in virtual time: one thread, no clock, equal runs for equal inputs.
///
///     World world({.ring = config});
///     world.start(0, [](Process&) { … bbp_init … bbp_send … });
///     world.start(1, [](Process&) { auto node = rmem::Node::open(); … });
///     world.run();
///
/// The wire is rmem/wire/model.hpp's, each node has a bank, each process is a fiber with a clock of
/// its own (docs/design/simulator.md). The thing with the least time is next; a process runs on
/// until something else is due before it.
///
/// Thread safety: a world belongs to one thread, and one world at a time runs programs that use the
///   C interfaces of the libraries.
/// Invariants   a bank changes only by its own stores and by writes that the wire brought, in each
///              origin's order; nothing is early; losses are reported; equal inputs give equal
///              events.
/// Units        nanoseconds of virtual time since the world began.
/// Errors       Error from the constructor and for ranks and nodes that do not exist; an exception
///              of a program leaves `run` and `step`, and its process is dead then.

#include "rmem/base/clock.hpp"
#include "rmem/base/histogram.hpp"
#include "rmem/base/time.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/counters.hpp"
#include "rmem/sim/event.hpp"
#include "rmem/sim/host_profile.hpp"
#include "rmem/sim/node_interrupts.hpp"
#include "rmem/sim/process.hpp"
#include "rmem/sim/wire.hpp"
#include "rmem/sim/writes_in_flight.hpp"
#include "rmem/wire/faults.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rmem::sim {

struct WorldConfig {
    RingConfig ring;             ///< its link is taken as sim; more than 256 nodes: see topology
    Topology topology{1, 0, 0};  ///< a hierarchy of rings; else one ring of ring.nodes
    HostProfile host;
    FaultPlan faults;  ///< of writes and of the wire, as RMEM_FAULTS has them
    /// What programs find in their environment, beside what follows from `ring` and the rank.
    std::map<std::string, std::string> environment;
    std::uint32_t incarnations_before = 0;  ///< of each rank: incarnations count from here
    std::size_t stack_bytes = Fiber::kDefaultStackBytes;
};

/// When a node's own bank shows what one of its processes stores.
enum class OwnBank : std::uint8_t { at_once, at_return };

enum class RunEnd : std::uint8_t {
    all_ended = 0,  ///< every program has returned or was killed, and the wire is empty
    stuck,          ///< nothing can ever happen: the programs left wait for each other
    out_of_time
};

class RMEM_API World {
public:
    explicit World(WorldConfig config);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    const RingConfig& ring() const noexcept { return config_.ring; }
    const HostProfile& host() const noexcept { return config_.host; }
    unsigned nodes() const noexcept { return static_cast<unsigned>(nodes_.size()); }
    unsigned ranks() const noexcept { return static_cast<unsigned>(ranks_.size()); }
    unsigned node_of(unsigned rank) const noexcept { return ranks_[rank].node; }

    // ---- Processes. Not of the one that calls, unless said otherwise.
    /// The rank's next incarnation begins at this time (not before now). Throws where it has one
    /// already.
    void start(unsigned rank, Program program, std::int64_t at_ns = 0);
    /// Ends it between two accesses; writes that its card has taken go on. Its own too: at its next
    /// access.
    void kill(unsigned rank);
    void stop(unsigned rank);  ///< it is alive, but does nothing
    void resume(unsigned rank);
    /// It loses the processor for `ns`.
    void stall(unsigned rank, std::int64_t ns);
    /// Calls once, before the process's access after `accesses` more. Ends with the process.
    void at_access(unsigned rank, std::uint64_t accesses, std::function<void()> action);
    bool has_ended(unsigned rank) const noexcept;  ///< returned or killed
    bool runs(unsigned rank) const noexcept { return !has_ended(rank); }

    // ---- Nodes and cables (of a single ring)
    /// The card is off: its processes are killed, its queue is lost, the ring passes it by.
    void fail_node(unsigned node);
    /// It is on again. Once what was on the wire is through, it has a live node's memory, and
    /// `joined` is called: the time to start its processes.
    void join_node(unsigned node, std::function<void()> joined);
    bool is_node_alive(unsigned node) const noexcept { return nodes_[node].alive; }
    void set_cable(std::uint32_t ring, unsigned from_node, bool up);

    // ---- The next `count` writes that a node's processes make
    void delay_writes(unsigned node, std::uint64_t count, std::int64_t by_ns);  ///< in its card
    void lose_writes(unsigned node, std::uint64_t count);    ///< before the wire; reported
    void repeat_writes(unsigned node, std::uint64_t count);  ///< each arrives twice everywhere

    // ---- Time
    std::int64_t now_ns() const noexcept { return now_ns_; }
    /// Calls it at that time, or now; before all else that is due then.
    void at(std::int64_t time_ns, std::function<void()> action);
    /// When the next thing is due; kNever when there is none: everything has ended or is stuck.
    std::int64_t next_ns();
    /// One event. False when there is none.
    bool step();
    /// All that is due until then.
    RunEnd run(std::int64_t until_ns = kNever);
    /// Neither writes on the wire nor anything due before that time.
    bool is_quiet() const noexcept;

    // ---- What can be seen of it
    void observe(Observer* observer) noexcept;
    std::span<const std::byte> bank(unsigned node) const noexcept { return nodes_[node].bank; }
    std::uint32_t word(unsigned node, std::size_t offset) const noexcept;
    std::uint64_t counter(unsigned node, LinkCounter id) const noexcept;
    const Counters& protocol_counters(unsigned rank) const noexcept;
    const Histogram& propagation(unsigned node) const noexcept;
    WireCounters wire_totals() const noexcept { return wire_.totals(); }
    std::int64_t bound_ns() const noexcept { return bound_ns_; }
    std::uint64_t writes() const noexcept { return writes_; }
    std::uint64_t arrivals() const noexcept { return arrivals_; }
    std::uint64_t lost() const noexcept { return lost_; }

    /// An environment variable of a process, or null.
    const char* variable(const Process& process, const char* name) const noexcept;

private:
    friend class Process;
    friend class SimMemory;
    friend class SimCard;
    friend class Membership;
    friend struct PlantedBug;  ///< a test's, which a check finds

    struct Node {
        std::vector<std::byte> bank;
        std::vector<std::uint64_t> applied;  ///< of each origin, the last write's number
        std::vector<Process*> parked;        ///< its processes that watch words
        std::vector<Process*> stalled;       ///< its processes in a store that finds the FIFO full
        bool alive = true;
        bool complete = true;      ///< not joining: its bank has all that it must have
        unsigned joins = 0;        ///< how often it was told to
        std::int64_t gone_ns = 0;  ///< when the last of its writes was through, if it is off
        std::uint64_t delays_due = 0, losses_due = 0, repeats_due = 0;  ///< writes to be hit
        std::int64_t delay_ns = 0;
        std::uint64_t finished = 0;      ///< the last own write that came round or was lost
        std::unique_ptr<Counters> link;  ///< of the bank
        std::unique_ptr<Histogram> propagation;
        std::unique_ptr<NodeInterrupts> interrupts;  ///< once a program has asked for some
    };
    struct Rank {
        unsigned node = 0;
        unsigned starts = 0;
        std::uint32_t incarnation = 0;
        bool held = false;             ///< a process has joined as it
        std::uint64_t last_write = 0;  ///< its node's count when it was let go
        std::unique_ptr<Process> process;
        std::unique_ptr<Counters> link;  ///< of its sends, in all its incarnations
        std::unique_ptr<Counters> protocol;
        std::unique_ptr<WriteFaults> faults;
        std::multimap<std::uint64_t, std::function<void()>> at_access;  ///< by its accesses
    };
    struct Ready {
        std::int64_t time_ns;
        std::uint64_t order;
        unsigned rank;
    };
    struct Timer {
        std::int64_t time_ns;
        std::uint64_t order;
        std::function<void()> action;
    };

    // -- time (world.cpp)
    bool step_until(std::int64_t until_ns);
    void settle(Process& process);
    [[nodiscard]] bool catch_up(Process& process);
    [[nodiscard]] bool put_off(Process& process);
    void suspend(Process& process);
    void park(Process& process, std::int64_t until_ns);
    void let_go(unsigned rank);
    void queue(Process& process, std::int64_t time_ns);
    void unpark(Process& process);
    std::int64_t next_ready_ns();
    bool is_due(const Ready& entry) const noexcept;
    Ready drop_first_ready();
    std::int64_t next_timer_ns() const noexcept;
    void run_timer();
    void run_process();
    void advance_wire(std::int64_t time_ns);
    void end_process(Rank& rank, EventKind how);
    void run_access_actions(Process& process);

    // -- memory (world_memory.cpp)
    void store(Process& process, std::size_t offset, const void* from, std::size_t bytes,
               OwnBank own = OwnBank::at_once);
    void store_part(Process& process, std::size_t offset, std::uint32_t value, WordPart part,
                    OwnBank own);
    void begin_store(Process& process);
    void await_fifo(Process& process);
    [[nodiscard]] bool has_room(Process& process);
    void await_start(Process& process);
    void wake_stalled(Node& node);
    std::uint32_t fifo_words(const Process& process);
    std::int64_t room_at(const Process& process, std::uint32_t words);
    void send(Process& process, std::size_t offset, const std::byte* from, std::size_t bytes,
              OwnBank own, WordPart part = kWholeWord);
    [[nodiscard]] bool spoil(Process& process, WriteInFlight& write, WireWrite& out);
    void note_lost(Node& origin, const WriteInFlight& write, LinkCounter why);
    void on_outcome(const WireOutcome& outcome);
    void finish_returned(const WireOutcome& outcome, const WriteInFlight& write);
    void apply(const WireOutcome& outcome, WriteInFlight& write);
    void repeat_later(const WireOutcome& outcome, const WriteInFlight& write);
    void measure(Node& node, unsigned id, const WriteInFlight& write, std::int64_t now);
    void wake_watchers(Node& node, std::size_t offset, std::size_t bytes, std::int64_t now);
    bool is_alive(unsigned rank) const noexcept;
    /// It was killed, and does not run; only destructors of the objects that it has kept do.
    bool is_left_over(const Process& process) const noexcept {
        return process.state_ == Process::State::dead && running_ != &process;
    }
    void note_liveness();
    void tell(EventKind kind, std::uint16_t node, const WriteInFlight* write, std::int64_t time,
              std::uint32_t rank = kNoRank, std::uint32_t value = 0) {
        if (observer_ != nullptr) tell_observer(kind, node, write, time, rank, value);
    }
    void tell_observer(EventKind kind, std::uint16_t node, const WriteInFlight* write,
                       std::int64_t time, std::uint32_t rank, std::uint32_t value);

    // -- calls (world_calls.cpp)
    void call(Process& process, std::function<void()> action);
    void run_calls_soon(const Process& process);
    void run_calls(unsigned rank, unsigned incarnation);
    void raise_interrupts(Node& node, unsigned id, const WriteInFlight& write, std::int64_t now);
    std::optional<Interrupt> take_interrupt(Process& process);
    void call_on_interrupt(Process& process);
    void call_on_violation(unsigned id, const WriteInFlight& write, std::int64_t propagation);

    // -- faults (world_faults.cpp)
    void schedule_wire_faults();
    void complete_join(unsigned node, unsigned joins, const std::function<void()>& joined);
    std::optional<unsigned> complete_node_before(unsigned node) const;
    [[nodiscard]] bool take_memory_of(unsigned source, unsigned node);
    std::int64_t settling_ns() const noexcept;

    /// Of a node: they follow each other.
    std::span<const Rank> ranks_of(unsigned node) const noexcept;
    void check_rank(unsigned rank) const;
    void check_node(unsigned node) const;

    WorldConfig config_;
    Wire wire_;
    std::int64_t bound_ns_;
    std::int64_t now_ns_ = 0;
    std::int64_t horizon_ns_ = 0;     ///< from here on the running process must look who is next
    std::int64_t limit_ns_ = kNever;  ///< no process runs on beyond it
    std::uint64_t order_ = 0;
    std::vector<Node> nodes_;
    std::vector<Rank> ranks_;
    std::vector<Ready> ready_;   // a heap
    std::vector<Timer> timers_;  // a heap
    WritesInFlight flight_;
    bool violations_awaited_ = false;  ///< some process has asked to be called
    Process* running_ = nullptr;
    unsigned liveness_changes_ = 0;
    Observer* observer_ = nullptr;
    std::uint64_t writes_ = 0, arrivals_ = 0, lost_ = 0;
};

}  // namespace rmem::sim
