// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The engine of a node on the udp link: what its card does. It joins the ring, sends what the
/// node's programs write, applies what others wrote to the node's bank, retransmits, answers, and
/// shows itself on the node's board.
///
/// It is the core (rmem/link/udp/protocol/core.hpp) with a clock, a carrier and a segment. One
/// process of this host runs it: the only program of the node, in its own calls and by a helper
/// thread while it computes (rmem/link/udp/memory.hpp), or the daemon `rmem node`, for any number
/// of programs. The process that holds the segment's engine lock is the one.
///
/// Terms: rmem/link/udp/outbox.hpp. Incarnation: from becoming a member to being dropped or ending;
/// NodeBoard::membership_epoch counts them.
/// Thread safety: all of it from any thread; one runs at a time, others wait some microseconds.
/// Progress: run() does what is due and returns; no other process can make it wait. rest() and
/// stand_in() wait for news. A thread that uses the engine while another one stands by for longer
/// than kTailNs wakes that one: what is due from then on is for it to do.
/// Errors: the constructor throws `Error` (bad_environment, bad_key, rank_taken, system…), join()
/// timed_out.
/// Units: nanoseconds of the monotonic clock; offsets in bytes.

#include "rmem/link/udp/engine_work.hpp"
#include "rmem/link/udp/rest.hpp"
#include "rmem/ring/waiting/spin_then_sleep.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace rmem::udp {

class RMEM_API Engine final : public Sleeper {
public:
    using ViolationHook = std::function<void(const BoundViolation&)>;
    static constexpr std::int64_t kTailNs = Rest::kTailNs;

    /// Begins to join. The ring outlives it; `own_rank`: the program's that runs it, none for a
    /// daemon.
    Engine(Ring& ring, EngineSettings settings, EngineKind kind, std::optional<unsigned> own_rank);

    /// Runs until this node is a member.
    void join(Deadline deadline);
    bool is_member() const noexcept { return work_.is_member(); }

    /// Takes what has come, and does what is due. Also when another thread was at it: a waiting
    /// program must not miss what that one left.
    void run();
    /// Waits for a datagram, a bell or a timer, at most `longest_ns`; does nothing about it.
    void rest(std::int64_t longest_ns) noexcept;
    /// The same, for the rank that runs the engine.
    void sleep(std::int64_t longest_ns) noexcept override;
    bool sleeps() const noexcept { return rest_.sleeps(); }
    /// Whether that rank is not to run it yet: what comes is taken together.
    bool naps() const noexcept { return rest_.naps(); }
    /// Whether it has slept since this was asked last.
    bool take_slept() noexcept { return rest_.take_slept(); }
    /// For the thread that runs the engine for a program that does not: sends what the program has
    /// left in its log, runs, and waits as rest() does, until there is something to do. What is not
    /// urgent waits for kTailNs: acknowledgements, which mostly ride on an answer until then, and
    /// the first probe for them. A timer before the host's next tick costs more than a datagram
    /// where the host is a virtual machine.
    /// `least_ns`: between looks at what a program leaves in its log.
    void stand_in(std::int64_t least_ns);
    /// Ends a rest() or stand_in().
    void interrupt() const noexcept { rest_.interrupt(); }

    // ---- The log of the rank that runs it (rmem/link/udp/outbox.hpp)
    /// What it has committed leaves, or of that the datagrams that are full or due. `now`: the
    /// newest write's time will do. Returns when the oldest write was made that has not left;
    /// kNever: all have.
    std::int64_t take(Leaving leaving, std::int64_t now);
    /// Whether a group of writes of `bytes` bytes in all finds room in the node's stream now; one
    /// of more than an eighth of what may be under way if that eighth is free.
    [[nodiscard]] bool has_room(std::size_t bytes);
    /// Runs, and what lies in the log leaves.
    void take_all();
    /// The rank leaves some of it there, and may compute for long.
    void leave_some();
    /// When the oldest write of it was made that has not left; kNever: all have.
    [[nodiscard]] std::int64_t open_since_ns();
    /// What it has committed leaves, and all members are asked to say that they have it.
    void take_and_ask();

    /// Called after a run, by the thread that ran.
    void on_bound_violation(ViolationHook hook);
    const Ring& ring() const noexcept { return ring_; }
    /// For what is any thread's.
    EngineWork& work() noexcept { return work_; }

private:
    void end_run(std::unique_lock<SpinThenSleep>& lock);
    [[nodiscard]] bool begin_rest() noexcept;
    void wait_for_news(std::int64_t ns, std::int64_t turn) noexcept;

    Ring& ring_;
    Rest rest_;
    SpinThenSleep mutex_;
    EngineWork work_;
    ViolationHook hook_;
};

}  // namespace rmem::udp
