// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/memory.hpp"

#include "rmem/ring/applied.hpp"
#include "rmem/ring/membership.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kFifoLookNs = 20'000;  // an older count of a busy FIFO is refreshed
constexpr std::int64_t kBusyNs = 20'000;      // a program that waits runs the engine more often
constexpr std::int64_t kStayNs = 10'000;  // a writer waits, beyond the wire's time, for its write
constexpr std::int64_t kStayTimes = 2;    // and so long for the time between two such waits
constexpr unsigned kPollsOfWire = 320;    // each runs the wire: about 0.3 ms
constexpr std::uint64_t kBroughtUnits = 128;  // of the log: then nodes that sleep get it together
constexpr std::uint64_t kTriedUnits = 8;      // later it is tried again
constexpr std::int64_t kMaxHoldOffNs =
    1'000'000'000;  // then a wire that does not move is not waited for

}  // namespace

RingOptions RingOptions::from(const Environment& environment, const RingConfig& config) {
    RingOptions options;
    if (environment.faults)
        options.faults = FaultPlan::parse(*environment.faults, config.nodes, config.link);
    if (!environment.check || environment.check->empty()) return options;
    if (*environment.check != "writers") {
        throw Error(
            Errc::bad_environment,
            fmt::format("RMEM_CHECK is '{}'; the only check is 'writers'", *environment.check));
    }
    options.check_writers = true;
    return options;
}

RingMemory::RingMemory(Membership& member)
    : RingMemory(member, RingOptions::from(Environment::read(), member.ring().config())) {}

RingMemory::RingMemory(Membership& member, const RingOptions& options)
    : BankWriter(member.ring(), member.node(), member.rank(), options.faults),
      member_(member),
      node_(member.node()),
      takes_time_(ring_.config().timing.instant == 0),
      most_stay_ns_(kStayNs + rmem::bound_ns(ring_.config().timing, ring_.config().nodes)),
      fifo_depth_(ring_.config().timing.fifo_words),
      fifo_loses_(ring_.config().timing.overflow == FifoPolicy::lose),
      dead_epoch_(ring_.config().nodes),
      sleepers_(ring_),
      engines_(ring_),
      engine_(member, options.faults, options.check_writers, !options.helper),
      delivery_(member, engine_.interrupts(), faults_.empty()) {
    if (takes_time_) waiter_.set_most_polls(kPollsOfWire);
    send_unsent_first([this](std::uint64_t units) { return wait_for_log(units), true; });
    users_end_ = log_.head();                                     // of a former incarnation, too
    if (member_.incarnation() != 1) engines_.wake_others(rank_);  // which knew nothing of its end
    begin_delivering();
    if (options.helper) helper_ = std::make_unique<RingEngineThread>(ring_, rank_, engine_);
}

RingMemory::~RingMemory() {
    if (member_.held()) static_cast<void>(flush(Deadline::in(kLeaveNs)));
}

void RingMemory::keep_applying(bool on) {
    // Programs ask for their bank often: others look around only when it is new.
    // relaxed is enough: the change that is noted orders it
    const std::uint32_t needs = on ? 1 : 0;
    if (ring_.rank(rank_).needs_delivery.exchange(needs, std::memory_order_relaxed) != needs)
        ring_.delivery().note_change();
    if (helper_) helper_->set_always(on);
}

// ---- Writing

void RingMemory::yield_to_holder() noexcept {
    ::sched_yield();
}

std::uint32_t RingMemory::mark_of(std::size_t offset, std::size_t bytes) const noexcept {
    const InterruptBoard& board = engine_.interrupts();
    return board.anyone_watches() && board.is_marked(offset, bytes) ? LogRecord::kInterrupt : 0;
}

void RingMemory::send(std::size_t offset, const void* from, std::size_t words,
                      std::uint32_t flags) {
    const auto* bytes = static_cast<const std::byte*>(from);
    stays_ = takes_time_ && offset < ring_.config().user_bytes && may_stay() && delivery_.claim();
    while (words != 0) {
        const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(words, kMaxRecordWords));
        send_record(offset, bytes, part, part < words ? flags | LogRecord::kMore : flags);
        offset += part * kWordBytes;
        bytes += part * kWordBytes;
        words -= part;
    }
    if (std::exchange(stays_, false)) stay();
}

/// Whether the time since the last such wait allows one that is long enough.
bool RingMemory::may_stay() {
    const bool is_needed = delivery_.is_needed();
    engine_.set_brings_own(is_needed);
    if (!is_needed) return false;
    const std::int64_t gap = (now_ns() - stayed_ns_) * kStayTimes;
    const std::int64_t budget = std::min(most_stay_ns_, stay_budget_ns_ + gap);
    if (budget < most_stay_ns_ - kStayNs) return false;
    stay_budget_ns_ = budget;
    return true;
}

/// Waits until the write is due everywhere, and brings it there, for programs that do not run their
/// engines: but not longer than these waits may take of the program's time. Then, as without them,
/// the threads behind those programs are woken.
void RingMemory::stay() {
    const std::int64_t now = now_ns();
    const bool is_done = bring(now, now + stay_budget_ns_);
    stayed_ns_ = now_ns();
    stay_budget_ns_ = std::max<std::int64_t>(now + stay_budget_ns_ - stayed_ns_, 0);
    if (!is_done) wake_behind(log_.head());
    engine_.run();  // and look at members, if it is time
}

/// Brings what is under way to all nodes as it falls due; the log is claimed. False: until the end
/// it could not bring all.
bool RingMemory::bring(std::int64_t now, std::int64_t end) {
    bool is_done = false;
    while (delivery_.keeps_claim() && now < end) {
        engine_.run_and_deliver(delivery_.claimed_from());
        is_done = delivery_.is_everywhere(log_.head());
        if (is_done) break;
        const std::int64_t next = engine_.next_due_ns();  // kNever: another engine is waited for
        const std::int64_t due =
            next == kNever ? now : std::min(next - RingEngine::kAwaitNs / 2, end);
        do {
            cpu_relax();
            now = now_ns();
        } while (now < due);
    }
    delivery_.release_claim();
    return is_done;
}

/// Brings to nodes that sleep the messages of others that have come round: each that woke up for
/// them would compute the wire for itself. Not while anything is under way, which a claim would
/// hold up. Words of users have many writers, whose order the engines keep.
void RingMemory::bring_come_round() {
    brought_ = log_.head() - kBroughtUnits + kTriedUnits;
    if (!engine_.run() || engine_.busy() || engine_.lacks_writes()) return;
    brought_ = log_.head();
    log_.note_quiet(now_ns());
    if (!delivery_.claim()) return;
    if (delivery_.keeps_claim() && delivery_.is_everywhere(users_end_))
        engine_.run_and_deliver(delivery_.claimed_from(), RingEngine::To::sleepers);
    delivery_.release_claim();
}

void RingMemory::send_record(std::size_t offset, const void* from, std::uint32_t words,
                             std::uint32_t flags) {
    LogRecord record;
    record.offset = offset;
    record.words = words;
    record.flags = flags;
    if (!log_.fits(LogArea::units_of(words))) wait_for_log(LogArea::units_of(words));
    if (is_lost(record)) return;
    if (delivery_.may_begin()) [[unlikely]]
        begin_delivering();
    delivery_.time(record);
    if (fifo_depth_ != 0) {
        if (!enter_fifo(words, record.written_ns)) {
            counters_.add(LinkCounter::writes_lost_fifo);
            return;
        }
        record.queued_words = queued_;
        queued_ += words;
    }
    append(record, from);
}

/// A protocol's words are looked for by ranks that run their engines, and woken for them: engines
/// that sleep take them when they next run, or when the log is full.
void RingMemory::leave_to_engines(const LogRecord& record) {
    const bool is_user = record.offset < ring_.config().user_bytes;
    if (is_user) users_end_ = log_.head();
    if (!stays_ && (is_user || !takes_time_ || ring_.config().bound_ns != 0))
        engines_.wake_others(rank_);
    if ((record.flags & LogRecord::kMeLast) != 0) engines_.wake(rank_);  // to apply it here, too
    const std::size_t bytes = record.words * kWordBytes;
    const bool is_wanted = is_user ? sleepers_.is_wanted(record.offset, bytes)
                                   : record.offset >= ring_.config().registers_offset();
    if (is_wanted) [[unlikely]]
        tell(record.offset, bytes, record.written_ns);
}

void RingMemory::begin_delivering() {
    if (!delivery_.may_begin()) return;
    if (const std::uint64_t head = log_.head(); reclaim() == head) delivery_.begin(head);
}

/// The engine is run, although it most probably has nothing to do.
void RingMemory::run_idly() {
    refused_ = engine_.run() ? 0 : refused_ + 1;
    delivery_.settle();
    begin_delivering();
}

/// Wakes those that sleep for these words, and the nodes that watch any: they apply them. The
/// thread of a node whose program runs the engine just now would only take the processor from it.
void RingMemory::tell(std::size_t offset, std::size_t bytes, std::int64_t now) noexcept {
    sleepers_.wake(offset, bytes);
    if (!interrupts().anyone_watches()) return;
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        // relaxed is enough: a rank that has just come applies what it finds
        const std::uint32_t node = ring_.rank(r).node.load(std::memory_order_relaxed);
        if (r == rank_ || node >= ring_.config().nodes || !interrupts().is_watching(node)) continue;
        // relaxed is enough: the fence of is_wanted() orders it after the append
        if ((attention_[r].load(std::memory_order_relaxed) & kAttentionTaking) != 0)
            wake_rank(ring_, r);
        // relaxed is enough: a look that comes a little later is soon enough
        const std::int64_t ran = ring_.node(node).engine_ran_ns.load(std::memory_order_relaxed);
        // relaxed is enough: likewise
        const bool needs = ring_.rank(r).needs_delivery.load(std::memory_order_relaxed) != 0;
        if (!stays_ && (needs || now - ran > kBusyNs)) engines_.wake(r);
    }
}

/// Wakes the engines of nodes that have not applied the own writes up to there.
void RingMemory::wake_behind(std::uint64_t position) noexcept {
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        // relaxed is enough: one that is woken for nothing lies down again
        const std::uint32_t node = ring_.rank(r).node.load(std::memory_order_relaxed);
        if (r == rank_ || node >= ring_.config().nodes) continue;
        if (applied_of(ring_, node, rank_) < position) engines_.wake(r);
    }
}

// ---- Room

bool RingMemory::room(std::size_t bytes) {
    const std::uint64_t units = units_of_group(bytes);
    if (takes_time_ && log_.head() >= brought_ + kBroughtUnits) bring_come_round();
    if (!log_.fits(units)) {
        engine_.run();  // what has come round
        reclaim();
        if (!log_.fits(units)) wake_behind(log_.head());
    }
    bool granted = log_.fits(units);
    if (granted && fifo_depth_ != 0 && !fifo_loses_) {
        // A group that fits must not have to wait between its writes; half a FIFO is enough for
        // others.
        const auto words =
            static_cast<std::uint32_t>(std::min<std::size_t>(bytes / kWordBytes, fifo_depth_ / 2));
        if (queued_ + words > fifo_depth_) look_at_fifo(now_ns());
        granted = queued_ + words <= fifo_depth_;
    }
    if (!granted) counters_.add(LinkCounter::back_pressure);
    return granted;
}

/// For writes whose writer asked for no room.
void RingMemory::wait_for_log(std::uint64_t units) {
    for (reclaim(); !log_.fits(units); reclaim()) {
        wake_behind(log_.head());
        engine_.run();
        ::sched_yield();
    }
}

/// Waits until the FIFO has room for the words, and sets `now` to when it had. False when they are
/// lost instead.
bool RingMemory::enter_fifo(std::uint32_t words, std::int64_t& now) {
    const std::uint32_t wanted = std::min(words, fifo_depth_);
    const auto fits = [&] { return queued_ + wanted <= fifo_depth_; };
    if (queued_ != 0 && (!fits() || now - queued_at_ns_ > kFifoLookNs)) look_at_fifo(now);
    if (fits()) [[likely]]
        return true;
    if (fifo_loses_) return false;
    counters_.add(LinkCounter::held_off);
    const std::int64_t end = now + kMaxHoldOffNs;
    while (!fits() && now < end) {
        cpu_relax();
        now = now_ns();
        look_at_fifo(now);
    }
    return true;
}

void RingMemory::look_at_fifo(std::int64_t now) {
    if (!engine_.run_for_fifo()) return;
    queued_ = engine_.fifo_words();
    queued_at_ns_ = now;
}

/// Whether writers wait for a node: it was taken into the ring, and was not found dead since.
bool RingMemory::has_applied_all(unsigned rank) const noexcept {
    const LogArea log(ring_.log(rank));
    // (7) - this acquire-load synchronizes-with the release-store rmem/ring/write_log.hpp (2)
    const std::uint64_t head = log.header().head.load(std::memory_order_acquire);
    return applied_of(ring_, node_, rank) >= head;
}

bool RingMemory::counts(unsigned node, std::uint32_t epoch) const noexcept {
    return epoch != 0 && epoch != dead_epoch_[node];
}

void RingMemory::check_slow_node(unsigned node, std::uint32_t epoch, std::int64_t now) {
    if (now < next_liveness_ns_) return;
    next_liveness_ns_ = now + kCheckNs;
    if (!ring_.is_present(node)) dead_epoch_[node] = epoch;
}

/// Gives the log back as far as all live nodes have applied it; returns that.
std::uint64_t RingMemory::reclaim() {
    std::uint64_t least = log_.head();
    unsigned slowest = node_;
    std::uint32_t slowest_epoch = 0;
    for (unsigned n = 0; n < ring_.config().nodes; ++n) {
        const NodeSlot& slot = ring_.node(n);
        // (4) - this acquire-load synchronizes-with the acq_rel add rmem/ring/membership.cpp (3)
        const std::uint32_t epoch = slot.present.load(std::memory_order_acquire);
        if (!counts(n, epoch)) continue;
        const std::uint64_t applied = applied_of(ring_, n, rank_);
        if (applied >= least) continue;
        least = applied;
        slowest = n;
        slowest_epoch = epoch;
    }
    log_.reclaim(least);
    if (slowest != node_) check_slow_node(slowest, slowest_epoch, now_ns());
    return least;
}

bool RingMemory::flush(Deadline deadline) {
    delivery_.settle();
    const std::uint64_t target = log_.head();
    const auto bring_all = [&] {
        const std::int64_t now = now_ns();
        const std::int64_t end = std::min(now + most_stay_ns_, deadline.at_ns);
        return takes_time_ && delivery_.claim() && bring(now, end);
    };
    // Those that sleep are woken if it does not go without.
    if (!bring_all()) wake_behind(target);
    for (unsigned n = 0; n < ring_.config().nodes;) {
        const NodeSlot& slot = ring_.node(n);
        // (5) - this acquire-load synchronizes-with the acq_rel add rmem/ring/membership.cpp (3)
        const std::uint32_t epoch = slot.present.load(std::memory_order_acquire);
        const std::uint64_t applied = applied_of(ring_, n, rank_);
        if (!counts(n, epoch) || applied >= target) {
            ++n;
            continue;
        }
        const std::int64_t now = now_ns();
        if (deadline.passed(now)) return false;
        if (n != node_) check_slow_node(n, epoch, now);
        if (!bring_all()) engine_.run();
        ::sched_yield();
    }
    counters_.add(LinkCounter::flushes);
    return true;
}

}  // namespace rmem
