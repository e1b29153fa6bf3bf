// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/memory.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/ring/waiting/awaiting.hpp"
#include "rmem/ring/waiting/wait_stages.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kRestNs = 1'000'000;
constexpr std::int64_t kClientRestNs = 20'000;  // between looks of a client that waits

FaultPlan fault_plan(const RingConfig& config) {
    const Environment environment = Environment::read();
    return environment.faults ? FaultPlan::parse(*environment.faults, config.nodes, config.link)
                              : FaultPlan{};
}

}  // namespace

UdpOptions UdpOptions::from(const Environment& environment) {
    UdpOptions options;
    options.join_timeout_ns = environment.join_timeout_ns.value_or(kDefaultJoinTimeoutNs);
    return options;
}

UdpMemory::UdpMemory(Membership& member)
    : UdpMemory(member, UdpOptions::from(Environment::read())) {}

UdpMemory::UdpMemory(Membership& member, const UdpOptions& options)
    : BankWriter(member.ring(), member.node(), member.rank(), fault_plan(member.ring().config())),
      member_(member),
      board_(member.ring().board()),
      interrupts_(ring_, member.node(), rank_),
      company_(ring_) {
    const Deadline deadline = Deadline::in(options.join_timeout_ns);
    start_engine(deadline);
    if (!engine_) await_engine(deadline);
    bound_ns_ = Punctuality(ring_.config(), ring_.node(member.node())).bound();
    take_rank(member, deadline);
    send_unsent_first([&](std::uint64_t units) {
        leave(udp::Leaving::all);
        return await(deadline, [&] { return fits(units); });
    });
    leave(udp::Leaving::all);
    if (engine_ && options.helper) helper_ = std::make_unique<udp::EngineHelper>(*engine_);
    if (engine_) waiter_.sleep_by(engine_.get());
    if (engine_) waiter_.set_most_polls(kSpinPollsHere);
    company_.look(waiter_, rmem::now_ns());
}

/// Runs the engine in this process, if no other does and a daemon is not expected back.
void UdpMemory::start_engine(Deadline deadline) {
    // relaxed is enough: the holder of the lock is the only writer
    const auto kind = static_cast<udp::EngineKind>(board_.kind.load(std::memory_order_relaxed));
    if (kind == udp::EngineKind::daemon) return;
    auto lock = ring_.try_lock_engine();
    if (!lock) return;
    engine_lock_ = std::move(*lock);
    engine_ = std::make_unique<udp::Engine>(ring_, udp::EngineSettings::read(ring_.config()),
                                            udp::EngineKind::program, rank_);
    engine_->join(deadline);
    // relaxed is enough: this process has joined itself
    epoch_ = board_.membership_epoch.load(std::memory_order_relaxed);
}

void UdpMemory::await_engine(Deadline deadline) {
    for (;;) {
        epoch_ = node_epoch();
        if (epoch_ % 2 == 1 && ring_.has_engine()) break;
        if (deadline.passed(rmem::now_ns())) {
            throw Error(
                Errc::timed_out,
                fmt::format(
                    "node {} of ring '{}' has no engine that is in the ring; start `rmem node`, or "
                    "read its output; if it is not to come back, `rmem clean` removes the node",
                    member_.node(), ring_.config().name));
        }
        std::this_thread::sleep_for(std::chrono::nanoseconds(kRestNs));
    }
    bell_ = Bell::open(ring_.segment_name(), ring_.group());
}

/// Says in the roster that this program has the rank, unless another host has it.
void UdpMemory::take_rank(Membership& member, Deadline deadline) {
    const udp::RosterEntry entry = udp::Roster(ring_, member.node()).entry(rank_);
    // relaxed is enough: a member that has come or gone just now is not known for certain anyway
    const std::uint64_t members = board_.members[entry.node / 64].load(std::memory_order_relaxed);
    const bool is_elsewhere = entry.node != member.node() && (members >> entry.node % 64 & 1) != 0;
    if (entry.joined && is_elsewhere) {
        throw Error(
            Errc::rank_taken,
            fmt::format("rank {} of ring '{}' is a program of node {}; give each program its own "
                        "RMEM_RANK",
                        rank_, ring_.config().name, entry.node));
    }
    member.follow(entry.incarnation);
    commit_log();
    // relaxed is enough, twice: (7), and the former program of this rank had the byte lock. What
    // that one wrote in this incarnation still counts.
    if (board_.opened[rank_].load(std::memory_order_relaxed) != epoch_) {
        board_.begun[rank_].store(log_.head(), std::memory_order_relaxed);
    }
    // (7) - this release-store synchronizes-with the acquire-load rmem/link/udp/outbox.cpp (3)
    board_.opened[rank_].store(epoch_, std::memory_order_release);
    announce_membership_change();
    if (rank_ < ring_.config().ranks) await_roster(deadline);
}

/// The engine must say that this program is there before anything that it writes leaves: a node
/// that saw the writes first would take it for dead already.
void UdpMemory::await_roster(Deadline deadline) const {
    const udp::RosterEntry said{true, member_.node(), member_.incarnation()};
    const udp::Roster roster(ring_, member_.node());
    const std::int64_t begin = rmem::now_ns();
    while (roster.entry(rank_).word() != said.word()) {
        check_epoch();
        if (engine_) engine_->run();
        const std::int64_t now = rmem::now_ns();
        if (deadline.passed(now)) {
            throw Error(Errc::timed_out,
                        fmt::format("the engine of node {} of ring '{}' does not answer this "
                                    "program; read the output of `rmem node`",
                                    member_.node(), ring_.config().name));
        }
        // By time: beside programs that compute a yield lasts for one of their turns.
        if (now - begin < kYieldNs) {
            ::sched_yield();
        } else {
            std::this_thread::sleep_for(std::chrono::nanoseconds(kRestNs));
        }
    }
}

UdpMemory::~UdpMemory() {
    if (!member_.held()) {
        // A thread of the parent's can be neither waited for nor told here.
        static_cast<void>(helper_.release());
        static_cast<void>(engine_.release());
        return;
    }
    const Deadline deadline = Deadline::in(kLeaveNs);
    company_.end();
    flush(deadline);
    if (engine_) {
        await_late_ones();
        // relaxed is enough: this thread runs the engine
        board_.opened[rank_].store(0, std::memory_order_relaxed);
    }
    announce_membership_change();
    if (engine_) flush(Deadline::in(kLeaveNs));
}

/// Until their nodes have the bank too, or do not come: what this one alone has would go with it.
void UdpMemory::await_late_ones() noexcept {
    begin_wait();
    while (ring_.is_expecting() && !is_over() &&
           !missing_nodes(ring_, ring_.config().ranks).empty()) {
        wait(Deadline::in(kRestNs));
    }
    end_wait();
}

/// The engine is to look who has come or gone.
void UdpMemory::announce_membership_change() noexcept {
    // (5) - this release-add synchronizes-with the acquire-load rmem/link/udp/outbox.cpp (5)
    board_.membership_changes.fetch_add(1, std::memory_order_release);
    if (bell_) bell_->ring();
}

/// All of the own log may leave.
void UdpMemory::commit_log() noexcept {
    // (6) - this release-store synchronizes-with the acquire-load rmem/link/udp/outbox.cpp (2)
    board_.committed[rank_].store(log_.head(), std::memory_order_release);
}

/// What ended the incarnation leaves the bank as it is, if it runs the node no more.
bool UdpMemory::is_left_alone() const noexcept {
    if (engine_ || node_epoch() != epoch_ + 1) return false;
    // relaxed is enough: (1); the next engine comes after its process is named
    return board_.pid.load(std::memory_order_relaxed) == 0 || !ring_.has_engine();
}

bool UdpMemory::is_over() const noexcept {
    return node_epoch() != epoch_ || (!engine_ && !ring_.has_engine());
}

void UdpMemory::check_epoch() const {
    if (!is_over()) return;
    throw IncarnationOver(
        Errc::timed_out,
        fmt::format(
            "node {} of ring '{}' was dropped by the others, or its engine ended, while this "
            "program joined; start it again",
            member_.node(), ring_.config().name));
}

bool UdpMemory::is_alive(unsigned rank) const noexcept {
    if (is_over()) return rank == rank_;
    // (2) - this acquire-load synchronizes-with the release-stores rmem/link/udp/roster.cpp (1) and
    // rmem/link/udp/roster.cpp (2)
    const auto state =
        static_cast<RankState>(ring_.rank(rank).state.load(std::memory_order_acquire));
    return state == RankState::elsewhere || ring_.is_alive(rank);
}

// ---- Writing

std::uint32_t UdpMemory::mark_of(std::size_t offset, std::size_t bytes) const noexcept {
    if (offset >= ring_.config().user_bytes) return 0;
    return interrupts_.is_marked(offset, bytes) ? LogRecord::kInterrupt : 0;
}

void UdpMemory::send(std::size_t offset, const void* from, std::size_t words, std::uint32_t flags) {
    const auto* bytes = static_cast<const std::byte*>(from);
    // A long write's words are not copied, if the bank has them until they are in the stream.
    const bool is_in_bank = engine_ && words > kMaxRecordWords && flags == 0 && faults_.empty();
    LogRecord record;
    record.flags = is_in_bank ? LogRecord::kInBank : flags;
    const std::size_t most = is_in_bank ? kMaxBankRecordWords : kMaxRecordWords;
    for (; words != 0; words -= record.words) {
        record.offset = offset;
        record.words = static_cast<std::uint32_t>(std::min(words, most));
        record.written_ns = time_of_write();
        put(record, bytes);
        offset += record.words * kWordBytes;
        bytes += record.words * kWordBytes;
    }
    if (is_in_bank) leave_all_words();
}

/// Others may overwrite them from then on.
void UdpMemory::leave_all_words() {
    leave(udp::Leaving::what_is_due);
    const auto is_done = [&] {
        // (8) - this acquire-load synchronizes-with the release-store rmem/link/udp/outbox.cpp (4)
        return board_.consumed[rank_].load(std::memory_order_acquire) == log_.head();
    };
    if (!is_done()) static_cast<void>(await(Deadline::never(), is_done));
}

std::int64_t UdpMemory::time_of_write() noexcept {
    const auto is_taken = [&] {
        // relaxed is enough: an old one is not equal
        return board_.consumed[rank_].load(std::memory_order_relaxed) == log_.head();
    };
    return pacing_.time(is_taken, rmem::now_ns);
}

[[gnu::always_inline]] inline void UdpMemory::append(const LogRecord& record, const void* words) {
    log(record, words);
    pacing_.on_write(record.written_ns, LogArea::units_of(record) * kLogUnitBytes);
    if (engine_ && engine_->work().is_serving()) [[unlikely]]
        leave(udp::Leaving::what_is_due);
}

void UdpMemory::put(LogRecord& record, const std::byte* words) {
    if (is_lost(record)) return;
    const std::uint64_t units = LogArea::units_of(record);
    if (!log_.fits(units) && !fits(units)) [[unlikely]] {
        leave(udp::Leaving::all);
        if (!await(Deadline::never(), [&] { return fits(units); })) return;
        record.written_ns = rmem::now_ns();  // what waits for room is written when it finds some
    }
    append(record, words);
}

bool UdpMemory::write_at_once(std::size_t offset, std::uint32_t value, WordPart part) {
    if (!faults_.empty() || !log_.fits(LogArea::units_of(1)) || !is_heard()) return false;
    if (part != kWholeWord && ring_.config().timing.whole_words != 0) return false;
    const Applying applying(applier_, offset, 1, part, log_.head());
    LogRecord record;
    record.offset = offset;
    record.words = 1;
    record.flags = LogRecord::flags_of(part) | mark_of(offset, kWordBytes);
    own_bank_.store_of_word(record, value, applying.any_twin());
    record.written_ns = time_of_write();
    append(record, &value);
    unannounced_ = true;
    commit();
    return true;
}

/// Waits as for a write of others. False: the node's incarnation is over, or the deadline has
/// passed.
template <class Done>
bool UdpMemory::await(Deadline deadline, Done&& is_done) {
    if (!engine_) {  // another process says it by the board, and wakes nobody for it
        ::sched_yield();
        for (; !is_done(); std::this_thread::sleep_for(std::chrono::nanoseconds(kClientRestNs))) {
            if (is_over() || deadline.passed(rmem::now_ns())) return false;
        }
        return true;
    }
    begin_wait();
    bool done = false;
    while (!done && !is_over() && wait(deadline) != Step::expired) done = !is_over() && is_done();
    end_wait();
    return done;
}

void UdpMemory::commit() {
    if (engine_) {
        // relaxed is enough: only whether it has changed counts
        if (const auto leaving = pacing_.on_commit(board_.arrivals.load(std::memory_order_relaxed)))
            leave(*leaving);
        if (pacing_.coalesces() && helper_) {  // the program may compute for long before it calls
            light_fence();
            helper_->watch_actively();
        }
    } else {
        leave(udp::Leaving::all);
    }
    if (unannounced_) announce();
}

/// What was written leaves; under load what is due of it.
void UdpMemory::leave(udp::Leaving leaving) {
    commit_log();
    if (engine_) {
        pacing_.on_leave(engine_->take(leaving, pacing_.newest_ns()));
        if (!pacing_.is_loaded()) pacing_.on_left(rmem::now_ns());
        return;
    }
    pacing_.on_leave(kNever);
    light_fence();
    // relaxed is enough: the fence orders this load after the store before it
    if (board_.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
        bell_->ring();
}

/// The same of all; with it goes the question who has it.
void UdpMemory::leave_and_ask() {
    commit_log();
    pacing_.on_leave(kNever);
    engine_->take_and_ask();
}

/// A client's engine is another process, which it costs no system call to tell.
void UdpMemory::commit_on_wait() {
    if (!engine_) return commit();
    pacing_.on_commit_on_wait();
    engine_->leave_some();
}

/// Whether there is room, if what the engine has taken is given back.
bool UdpMemory::fits(std::uint64_t units) noexcept {
    // (3) - this acquire-load synchronizes-with the release-store rmem/link/udp/outbox.cpp (4)
    log_.reclaim(board_.consumed[rank_].load(std::memory_order_acquire));
    return log_.fits(units);
}

bool UdpMemory::room(std::size_t bytes) {
    const std::uint64_t units = units_of_group(bytes);
    bool granted = log_.fits(units) || fits(units);
    // A long write waits in send() until its words have left the bank for the node's stream.
    if (granted && engine_ && bytes > kMaxRecordWords * kWordBytes)
        granted = engine_->has_room(bytes);
    if (!granted) counters_.add(LinkCounter::back_pressure);
    return granted;
}

bool UdpMemory::flush(Deadline deadline) {
    if (!engine_) leave(udp::Leaving::all);
    if (unannounced_) announce();
    const auto is_done = [this, target = log_.head()] { return come_round() >= target; };
    if (!is_done()) {
        if (engine_) leave_and_ask();
        if (!await(deadline, is_done)) return false;
    }
    if (is_over()) return false;  // what was under way is lost
    pacing_.on_left(rmem::now_ns());
    counters_.add(LinkCounter::flushes);
    return true;
}

// ---- Waiting

void UdpMemory::progress() {
    using Progress = udp::Pacing::Progress;
    if (!engine_) {
        if (pacing_.is_to_leave(rmem::now_ns)) leave(udp::Leaving::all);
        return;
    }
    const Progress progress = pacing_.on_progress(rmem::now_ns);
    if (progress == Progress::none) return;
    if (progress == Progress::leave && pacing_.is_to_leave(rmem::now_ns)) leave(udp::Leaving::all);
    if (helper_) helper_->attend();
    engine_->run();
}

/// Omitted once only: a program that finds no room asks again, and then makes progress.
void UdpMemory::progress_to_post() {
    if (pacing_.on_post()) progress();
}

Step UdpMemory::wait(Deadline deadline) {
    pacing_.on_wait();
    look_once();
    if (!engine_ || !engine_->naps()) progress();
    const Step step = waiter_.step(deadline);
    if (step == Step::check_peers) company_.look(waiter_, rmem::now_ns());
    return step;
}

void UdpMemory::keep_applying(bool on) {
    if (helper_) helper_->set_always(on);
}

void UdpMemory::on_bound_violation(std::function<void(const BoundViolation&)> callback) {
    if (engine_) engine_->on_bound_violation(std::move(callback));
}

}  // namespace rmem
