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

#include "rmem/base/fence.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/udp/arrivals.hpp"
#include "rmem/link/udp/datagram_faults.hpp"
#include "rmem/link/udp/engine_settings.hpp"
#include "rmem/link/udp/oddities.hpp"
#include "rmem/link/udp/outbox.hpp"
#include "rmem/link/udp/pacing.hpp"
#include "rmem/link/udp/protocol/core.hpp"
#include "rmem/link/udp/roster.hpp"
#include "rmem/link/udp/tap.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/touched_part.hpp"
#include "rmem/ring/waiting/bell.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace rmem::udp {

/// A mutex whose holder is soon ready: to sleep and be woken takes longer. It holds it in a system
/// call that sends, and a datagram may come back before that has returned, as the helper of the
/// node to which it went may have taken the processor meanwhile. On that processor nobody spins:
/// the holder does not run there until it sleeps.
class SpinThenSleep {
public:
    void lock() {
        if (!mutex_.try_lock() && !spin()) mutex_.lock();
        processor_.set(::sched_getcpu());
    }
    void unlock() { mutex_.unlock(); }

private:
    static constexpr std::int64_t kSpinNs = 30'000;
    static constexpr unsigned kTriesALook = 16;

    [[nodiscard]] bool spin() {
        for (const std::int64_t begin = now_ns(); now_ns() - begin < kSpinNs;) {
            if (processor_.get() == ::sched_getcpu()) return false;
            for (unsigned i = 0; i < kTriesALook; ++i) {
                if (mutex_.try_lock()) return true;
                cpu_relax();
            }
        }
        return false;
    }

    std::mutex mutex_;
    Hint<int> processor_{-1};  ///< on which its last holder took it
};

class RMEM_API Engine final : public Sleeper, private CoreEdge {
public:
    using ViolationHook = std::function<void(const BoundViolation&)>;
    static constexpr std::int64_t kKeepNs =
        10'000'000;  ///< at least, between looks at who of this host is alive
    /// The longest time after a write in which no thread stands by. If its datagram is lost, and no
    /// other datagram wakes a thread, it is sent again after that time.
    static constexpr std::int64_t kTailNs = 4'000'000;

    /// Begins to join. The ring outlives it; `own_rank`: the program's that runs it, none for a
    /// daemon.
    Engine(Ring& ring, EngineSettings settings, EngineKind kind, std::optional<unsigned> own_rank);
    /// Leaves the ring in good order: no node waits for this one.
    ~Engine() override;

    /// Runs until this node is a member.
    void join(Deadline deadline);
    bool is_member() const noexcept;

    /// Takes what has come, and does what is due. Also when another thread was at it: a waiting
    /// program must not miss what that one left.
    void run();
    /// Waits for a datagram, a bell or a timer, at most `longest_ns`; does nothing about it.
    void rest(std::int64_t longest_ns) noexcept;
    /// The same, for the rank that runs the engine.
    void sleep(std::int64_t longest_ns) noexcept override;
    bool sleeps() const noexcept { return sleeps_.get(); }
    /// Whether that rank is not to run it yet: what comes is taken together.
    bool naps() const noexcept {
        const std::int64_t until = nap_until_ns_.get();
        return until != 0 && now_ns() < until;
    }
    /// To be waited for with poll(2) by others than the engine: readable when something has come.
    int descriptor() const noexcept { return carrier_->handle(); }
    /// Whether something that has come is held back, for a timing profile or by a fault, and due
    /// before a helper would stand in for a program that waits for the descriptor.
    bool defers() const noexcept { return deferred_until_ns_.get() - now_ns() < kTailNs; }
    /// Whether it has slept since this was asked last.
    bool take_slept() noexcept {
        if (!has_slept_.get()) return false;
        has_slept_.set(false);
        nap_until_ns_.set(0);
        return true;
    }
    /// For the thread that runs the engine for a program that does not: sends what the program has
    /// left in its log, runs, and waits as rest() does, until there is something to do. What is not
    /// urgent waits for kTailNs: acknowledgements, which mostly ride on an answer until then, and
    /// the first probe for them. A timer before the host's next tick costs more than a datagram
    /// where the host is a virtual machine.
    /// `least_ns`: between looks at what a program leaves in its log.
    void stand_in(std::int64_t least_ns);
    /// Ends a rest() or stand_in().
    void interrupt() const noexcept { bell_.ring(); }
    /// Whether that thread has real-time priority, on the board.
    void show_real_time(bool has) noexcept;

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
    /// Another node is given the bank, which must not be ahead of the stream by more than a write:
    /// the rank has each taken.
    [[nodiscard]] bool is_serving() const noexcept { return serves_.get(); }
    /// What it has committed leaves, and all members are asked to say that they have it.
    void take_and_ask();

    InterruptBoard& interrupts() noexcept { return interrupts_; }
    std::int64_t bound_ns() const noexcept { return arrivals_.punctuality().bound(); }
    /// Called after a run, by the thread that ran.
    void on_bound_violation(ViolationHook hook);
    /// What to do about a small receive buffer; empty: it is fine.
    std::string buffer_advice() const { return carrier_->buffer_advice(); }
    const Carrier& carrier() const noexcept { return *carrier_; }
    const Ring& ring() const noexcept { return ring_; }
    /// The node whose writes have come last.
    unsigned heard_from() const noexcept { return heard_from_.get(); }

private:
    static constexpr std::int64_t kNobody = INT64_MIN;
    static constexpr std::int64_t kRestNs = 1'000'000;  ///< between looks while it joins

    // The core's edge
    void apply(unsigned origin, const Batch& batch, std::int64_t now) override;
    std::uint64_t behind(unsigned origin) const override { return arrivals_.behind(origin); }
    void store(std::uint64_t index, std::uint32_t value) override;
    bool hand_over_all(std::int64_t now) override;
    std::span<const std::byte> bank() override;
    void clear_bank() override;
    bool is_blank(std::uint64_t index, std::size_t words) override;
    void has_joined(std::int64_t now) override;
    void was_dropped(std::int64_t now) override;
    void member_came(unsigned node, std::int64_t now) override;
    void member_left(unsigned node, std::int64_t now) override;
    void on_odd(Odd odd, const Header& header, std::string_view text) override;

    void keep_carrier(std::int64_t now);
    void keep_oddities(std::int64_t now);
    void run_locked(std::int64_t now);
    void end_run(std::unique_lock<SpinThenSleep>& lock);
    void take_locked(Outbox::Take what, Leaving leaving, std::int64_t now);
    void take_news(std::int64_t now);
    std::int64_t open_since_locked() noexcept;
    [[nodiscard]] bool receive(std::int64_t& now);
    void flush() noexcept {
        if (!core_.outgoing().is_empty() && !is_lost_.get()) send_filled();
    }
    void send_filled() noexcept;
    void show_processor() noexcept;
    bool has_calls() const noexcept;
    void do_what_is_due(std::int64_t now);
    void apply_due(std::int64_t now);
    void keep(std::int64_t now);
    void keep_roster(std::int64_t now);
    void write_roster(unsigned rank, std::uint32_t incarnation, bool joined, std::int64_t now);
    void tell_programs() noexcept;
    void wake_programs() noexcept;
    void show_members() noexcept;
    void show_counters() noexcept;
    void show_nodes(std::int64_t now) noexcept;
    void advance_epoch(bool member) noexcept;
    std::int64_t due_ns() const noexcept;
    std::int64_t exact_due_ns() const noexcept;
    std::int64_t until_exact(std::int64_t now) noexcept;
    std::int64_t keep_due_ns() const noexcept;
    [[nodiscard]] bool begin_rest() noexcept;
    void wait_for_news(std::int64_t ns, std::int64_t turn_ns) noexcept;
    [[nodiscard]] std::int64_t turn_ns() noexcept;
    [[nodiscard]] std::int64_t nap_ns(std::int64_t now) noexcept;
    [[nodiscard]] bool is_host_full() noexcept;
    /// Whether a thread that stands by has to be told that there is something to do from now on.
    [[nodiscard]] bool take_stand_by(std::int64_t now) noexcept {
        if (now + kTailNs >= stands_by_until_ns_.get()) return false;
        stands_by_until_ns_.set(kNobody);
        return true;
    }
    std::atomic<std::uint32_t>* words() const noexcept;

    Ring& ring_;
    const unsigned node_;
    const std::optional<unsigned> own_rank_;
    Hint<std::int64_t> deferred_until_ns_ = kNever;
    NodeBoard& board_;
    const std::unique_ptr<Carrier> carrier_;
    Bell bell_;
    DatagramFaults faults_;
    Authenticator authenticator_;
    InterruptBoard interrupts_;
    Roster roster_;
    Tap tap_;
    Arrivals arrivals_;
    TouchedPart touched_;
    std::uint64_t touched_in_ = 0;  ///< the incarnation in which that was found out
    Oddities oddities_;

    SpinThenSleep mutex_;
    Core core_;
    Outbox outbox_;
    std::uint32_t membership_changes_seen_ = 0;
    std::int64_t next_keep_ns_ = 0;
    bool has_news_to_keep_ = false;                 ///< something came or was written since
    std::int64_t written_ns_ = INT64_MIN / 2;       ///< by its program, last
    Outbox::Take takes_ = Outbox::Take::committed;  ///< this run, of the logs
    std::int64_t unsent_since_ns_ = kNever;         ///< the oldest write in a datagram that is full
    bool lacks_room_ = false;                       ///< for what its program has committed
    Hint<bool> serves_{false};
    std::int64_t serves_until_ns_ = 0;
    Hint<std::int64_t> stands_by_until_ns_{kNobody};
    std::int64_t idle_until_ns_ =
        0;  ///< nothing is due before, if nothing comes and nothing is written
    std::int64_t ran_ns_ = 0;
    std::int64_t turn_ns_ = 0;        ///< of a crowd: between two looks at what has come
    std::int64_t turn_until_ns_ = 0;  ///< the next one
    const unsigned processors_allowed_ = allowed_processors();
    unsigned nodes_here_ = 1;         ///< of the ring, on this host
    std::int64_t count_next_ns_ = 0;  ///< when they are counted again
    Hint<unsigned> heard_from_{0};
    int processor_ = -1;  ///< that the board shows
    std::size_t place_ =
        SIZE_MAX;  ///< of the datagram that is read, among those that the socket gave
    std::int64_t odd_ns_ = INT64_MIN / 2;  ///< when something odd was heard last
    std::uint64_t namesakes_ = 0;
    std::string said_;     ///< of what is odd, on the board
    std::string problem_;  ///< why others are not reached
    std::int64_t next_refused_ns_ = 0;
    std::uint64_t sent_ = 0, refused_ = 0;  ///< by then
    bool is_refused_ = false;               ///< all that was sent between the last two looks
    Hint<bool> is_lost_{false};             ///< the program has closed its descriptors
    std::atomic<bool> is_member_{false};
    Hint<bool> sleeps_{false};
    Hint<bool> has_slept_{false};
    bool is_to_look_ = false;             ///< the rank that runs it, before it sleeps
    bool has_come_ = false;               ///< something, since it slept
    Hint<std::int64_t> nap_until_ns_{0};  ///< 0: what has come then is taken
    ViolationHook hook_;
    /// What former engines of this segment had counted.
    std::array<std::uint64_t, static_cast<std::size_t>(UdpCounter::count_)> former_{};
};

}  // namespace rmem::udp
