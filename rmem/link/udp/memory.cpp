// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/memory.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/ring/awaiting.hpp"
#include "rmem/ring/wait_stages.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kRestNs = 1'000'000;
constexpr unsigned kFewNodes = 8;
constexpr std::int64_t kCompanyNs = 5'000'000;    // for each node: between looks who is here
constexpr std::size_t kMostAtOnceWords = 16'384;  // handed to the engine in one call: a GSO batch
constexpr unsigned kStreamedCommits = 64;         // about a datagram full of single words
constexpr unsigned kUntimed = 7;                  // words of a stream after one that was timed
constexpr std::int64_t kFastNs = 5'000;           // as many come within that, or each is timed

/// A daemon needs a processor as a rank does.
unsigned daemons_of(const Ring& ring) {
    // relaxed is enough: an old one costs one processor too many or too few
    const auto kind =
        static_cast<udp::EngineKind>(ring.board().kind.load(std::memory_order_relaxed));
    return kind == udp::EngineKind::daemon && ring.has_engine() ? 1 : 0;
}

using Neighbours = std::map<std::string, std::shared_ptr<const Ring>>;

/// The ring's other nodes on this host, by the names of their segments. What is known of them stays
/// mapped: to map one takes 0.2 ms.
Neighbours neighbours_of(const Ring& ring, Neighbours known) {
    Neighbours neighbours;
    for (const std::string& name : Segment::list_of(ring.config().name)) {
        if (name == ring.segment_name()) continue;
        try {
            std::shared_ptr<const Ring>& other = known[name];
            if (!other || !other->is_linked()) other = Ring::observe(name, Mapping::Access::load);
            neighbours.emplace(name, std::move(other));
        } catch (const Error&) {  // it has just gone, or is just being made
            continue;
        }
    }
    return neighbours;
}

Company company_of(const Ring& ring, const Neighbours& neighbours) {
    Company company;
    company.daemons = daemons_of(ring);
    for (const auto& [name, other] : neighbours) {
        for (unsigned r = 0; r < other->config().ranks; ++r) {
            if (other->is_joined(r)) company.ranks.push_back({other, r});
        }
        company.daemons += daemons_of(*other);
        const ProcessorSet theirs = other->shared_processors();
        for (std::size_t i = 0; i < theirs.size(); ++i) company.processors[i] |= theirs[i];
    }
    return company;
}

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
    : BankWriter(member.ring(), member.node(), member.rank()),
      member_(member),
      board_(member.ring().board()),
      log_(ring_.log(rank_)),
      faults_(fault_plan(ring_.config()), member.node(), rank_),
      interrupts_(ring_, member.node(), rank_) {
    const Deadline deadline = Deadline::in(options.join_timeout_ns);
    start_engine(deadline);
    if (!engine_) await_engine(deadline);
    bound_ns_ = Punctuality(ring_.config(), ring_.node(member.node())).bound();
    take_rank(member, deadline);
    if (engine_ && options.helper) helper_ = std::make_unique<udp::EngineHelper>(*engine_);
    if (engine_) waiter_.sleep_by(engine_.get());
    if (engine_) waiter_.set_most_polls(kSpinPollsHere);
    // Of many that start at a time each would look at each.
    if (ring_.config().nodes > kFewNodes)
        company_next_ns_ = rmem::now_ns() + kCompanyNs * ring_.config().nodes;
    look_for_company();
}

/// When members have come or gone, but not for each of a crowd: whether there are more ranks here
/// than processors.
void UdpMemory::look_for_company() noexcept {
    std::uint64_t members = 0;
    for (const auto& part : board_.members) {
        // relaxed is enough: what is missed is seen at the next look
        members = members * 31 + part.load(std::memory_order_relaxed);
    }
    const std::int64_t now = rmem::now_ns();
    if (members == members_seen_ || now < company_next_ns_) return;
    members_seen_ = members;
    company_next_ns_ = now + kCompanyNs * ring_.config().nodes;
    has_looked_ = true;
    try {
        neighbours_ = neighbours_of(ring_, std::move(neighbours_));
        waiter_.set_company(company_of(ring_, neighbours_));
    } catch (const std::exception&) {  // no memory: as it was
    }
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
    if (engine_) return engine_->enroll(rank_, member.incarnation(), true);
    commit_log();
    // relaxed is enough, twice: (7), and the former program of this rank had the byte lock. What
    // that one wrote in this incarnation still counts.
    if (board_.opened[rank_].load(std::memory_order_relaxed) != epoch_) {
        board_.begun[rank_].store(log_.head(), std::memory_order_relaxed);
    }
    // (7) - this release-store synchronizes-with the acquire-load rmem/link/udp/outbox.cpp (3)
    board_.opened[rank_].store(epoch_, std::memory_order_release);
    announce_membership_change();
    await_roster(deadline);
}

/// The engine must say that this program is there before anything that it writes leaves: a node
/// that saw the writes first would take it for dead already.
void UdpMemory::await_roster(Deadline deadline) const {
    const udp::RosterEntry said{true, member_.node(), member_.incarnation()};
    const udp::Roster roster(ring_, member_.node());
    const std::int64_t begin = rmem::now_ns();
    while (roster.entry(rank_).word() != said.word()) {
        check_epoch();
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
    company_next_ns_ = kNever;  // who leaves looks for no company any more
    flush(deadline);
    if (!engine_) {
        announce_membership_change();
        return;
    }
    await_late_ones();
    engine_->enroll(rank_, member_.incarnation(), false);
    flush(Deadline::in(kLeaveNs));
}

/// Until their nodes have the bank too, or the launcher says that they do not come: what this one
/// was the first to write would go with it.
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
    // (5) - this release-add synchronizes-with the acquire-load rmem/link/udp/engine.cpp (6)
    board_.membership_changes.fetch_add(1, std::memory_order_release);
    bell_->ring();
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
    LogRecord record;
    record.flags = flags;
    const std::size_t most = engine_ ? kMostAtOnceWords : kMaxRecordWords;
    while (words != 0) {
        record.offset = offset;
        record.words = static_cast<std::uint32_t>(std::min(words, most));
        record.written_ns = rmem::now_ns();
        put(record, bytes);
        offset += record.words * kWordBytes;
        bytes += record.words * kWordBytes;
        words -= record.words;
    }
}

void UdpMemory::put(LogRecord record, const std::byte* words) {
    if (!faults_.empty()) {
        const WriteFaults::Verdict verdict = faults_.next();
        counters_.add(LinkCounter::faults_injected, verdict.injected);
        if (verdict.lose) return;
        record.delay_ns = verdict.delay_ns;
    }
    const std::size_t bytes = record.words * kWordBytes;
    std::int64_t pause_ns = 0;
    if (engine_) {
        const auto is_put = [&] {
            if (stream(record, words)) return true;
            const std::size_t taken = engine_->put(record, words);
            record.offset += taken * kWordBytes;
            record.words -= static_cast<std::uint32_t>(taken);
            words += taken * kWordBytes;
            return record.words == 0;
        };
        // What waits for room is written when it finds some.
        const auto is_put_now = [&] {
            record.written_ns = rmem::now_ns();
            return is_put();
        };
        if (!is_put() && !await(Deadline::never(), is_put_now)) return;
        pacer_.on_write(record.written_ns);
    } else {
        if (node_epoch() != epoch_) return;
        for (reclaim(); !log_.fits(LogArea::units_of(kMaxRecordWords)); reclaim()) {
            if (is_over()) return;
            await_room(pause_ns);
        }
        log_.append(record, words);
        log_coalescer_.on_write(record.written_ns);
    }
    counters_.add(LinkCounter::writes_sent);
    counters_.add(LinkCounter::bytes_sent, bytes);
}

/// Of the program that runs the engine, under load: a word or a double, without the engine. What is
/// streamed is taken before anything else that it writes.
bool UdpMemory::stream(const LogRecord& record, const void* words) {
    const bool is_plain = (record.flags & ~LogRecord::kInterrupt) == 0 && record.delay_ns == 0;
    if (!engine_->streams() || record.words > udp::ShortWrite::kMostWords || !is_plain)
        return false;
    udp::ShortWrite write;
    write.written_ns = record.written_ns;
    write.place.index = record.offset / kWordBytes;
    write.place.words = static_cast<std::uint16_t>(record.words);
    if (record.flags != 0) write.place.flags = udp::Place::kInterrupt;
    const auto* const from = static_cast<const std::byte*>(words);
    std::memcpy(&write.words[0], from, kWordBytes);
    if (record.words == 2) std::memcpy(&write.words[1], from + kWordBytes, kWordBytes);
    if (!engine_->own().put(write)) return false;
    room_bytes_ = 0;
    return true;
}

bool UdpMemory::write_word_at_once(std::size_t offset, std::uint32_t value) {
    if (!engine_ || !engine_->streams() || !faults_.empty() || !engine_->own().has_room() ||
        !is_heard())
        return false;
    {
        const Applying applying(applier_, offset, 1);
        own_bank_.store_word(offset, value, applying.any_twin());
    }
    udp::ShortWrite write;
    write.written_ns = time_of_streamed();
    write.place.index = offset / kWordBytes;
    write.place.words = 1;
    if (mark_of(offset, kWordBytes) != 0) write.place.flags = udp::Place::kInterrupt;
    write.words[0] = value;
    [[maybe_unused]] const bool is_put = engine_->own().put(write);
    RMEM_CHECK_IF(false, is_put);  // there was room
    room_bytes_ = 0;
    counters_.add(LinkCounter::writes_sent);
    counters_.add(LinkCounter::bytes_sent, kWordBytes);
    pacer_.on_write(write.written_ns);
    const std::int64_t written_ns = pacer_.on_commit();
    if (!may_stream_on(written_ns)) commit_by_engine(written_ns);
    if (engine_->may_have_clients()) announce();
    return true;
}

/// A clock costs as much as all the rest of such a word. A word that comes in a fast run has the
/// time of one before it, as the words of a datagram have that of the first; but each has its own
/// once the run is slower, or has been taken: then the program may have paused.
std::int64_t UdpMemory::time_of_streamed() noexcept {
    if (untimed_ != 0 && !engine_->own().is_empty()) {
        --untimed_;
        return timed_ns_;
    }
    const std::int64_t now = rmem::now_ns();
    untimed_ = now - timed_ns_ < kFastNs ? kUntimed : 0;
    return timed_ns_ = now;
}

/// Of the program that runs the engine: waits as for a write of others. False: the node's
/// incarnation is over, or the deadline has passed.
template <class Done>
bool UdpMemory::await(Deadline deadline, Done&& is_done) {
    begin_wait();
    bool done = false;
    while (!done && !is_over() && wait(deadline) != Step::expired) done = !is_over() && is_done();
    end_wait();
    return done;
}

/// Of a client, for writes that nobody asked room for.
void UdpMemory::await_room(std::int64_t& pause_ns) {
    commit();
    if (pause_ns == 0) {
        pause_ns = 1;
        ::sched_yield();
    } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

void UdpMemory::commit() {
    if (engine_) {
        const std::int64_t written_ns = pacer_.on_commit();
        if (!may_stream_on(written_ns)) commit_by_engine(written_ns);
    } else {
        log_coalescer_.on_sent();
        commit_log();
        light_fence();
        // relaxed is enough: the fence orders this load after the store before it
        if (board_.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
            bell_->ring();
    }
    if (unannounced_) announce();
}

void UdpMemory::commit_by_engine(std::int64_t written_ns) {
    const std::int64_t now = written_ns != 0 ? written_ns : rmem::now_ns();
    const auto done = engine_->commit(now);
    pacer_.on_committed(done.coalesces);
    room_bytes_ = done.room_bytes;
    // The program may compute for long before it calls again.
    if (done.coalesces && helper_) helper_->watch_actively();
    streamed_ = 0;
    taken_ns_ = now;
}

/// Whether what was streamed can wait for more: until it fills a datagram, or is due. As
/// all that coalesces it leaves by the helper, if the program computes then.
bool UdpMemory::may_stream_on(std::int64_t written_ns) {
    const bool is_due = written_ns == 0 || written_ns >= taken_ns_ + udp::kLazyNs;
    if (!engine_->streams() || is_due || ++streamed_ >= kStreamedCommits) return false;
    pacer_.on_committed(true);
    light_fence();  // the put, then the look whether the helper watches
    if (helper_) helper_->watch_actively();
    return true;
}

/// A client's engine is another process, which it costs no system call to tell.
void UdpMemory::commit_on_wait() {
    if (!engine_) return commit();
    engine_->end_streaming();
    engine_->commit_on_wait();
    pacer_.on_commit_on_wait();
}

void UdpMemory::reclaim() noexcept {
    // (3) - this acquire-load synchronizes-with the release-store rmem/link/udp/outbox.cpp (4)
    log_.reclaim(board_.consumed[rank_].load(std::memory_order_acquire));
}

bool UdpMemory::room(std::size_t bytes) {
    bool granted = false;
    if (engine_ && engine_->streams() && bytes <= udp::ShortWrite::kMostWords * kWordBytes &&
        engine_->own().has_room(kMaxGroupWrites)) {
        granted = true;
    } else if (room_bytes_ != 0 && bytes <= room_bytes_) {
        room_bytes_ = 0;
        granted = true;
    } else if (engine_) {
        granted = engine_->has_room(bytes);
    } else {
        const std::uint64_t units = std::min(LogArea::units_of_group(bytes, kMaxGroupWrites),
                                             log_.capacity() - LogWriter::kMaxPad);
        if (!log_.fits(units)) reclaim();
        granted = log_.fits(units);
    }
    if (!granted) counters_.add(LinkCounter::back_pressure);
    return granted;
}

bool UdpMemory::is_completed(std::uint64_t log_position) const noexcept {
    // (4) - this acquire-load synchronizes-with the release-store rmem/link/udp/outbox.cpp (6)
    return board_.completed[rank_].load(std::memory_order_acquire) >= log_position;
}

bool UdpMemory::flush(Deadline deadline) {
    if (engine_) {
        engine_->end_streaming();
        commit();
        const auto is_done = [&] { return engine_->is_completed(); };
        if (!is_done()) {
            engine_->ask_for_acks();
            if (!await(deadline, is_done)) return false;
        }
        if (is_over()) return false;  // what was under way is nobody's any more
    } else {
        commit();
        const std::uint64_t target = log_.head();
        for (std::int64_t pause_ns = 0; !is_completed(target); await_room(pause_ns)) {
            if (is_over() || deadline.passed(rmem::now_ns())) return false;
        }
    }
    counters_.add(LinkCounter::flushes);
    return true;
}

// ---- Waiting

void UdpMemory::progress() {
    using Progress = udp::ProgressPacer::Progress;
    if (!engine_) {
        if (log_coalescer_.due_ns() <= rmem::now_ns()) commit();
        return;
    }
    switch (pacer_.on_progress(rmem::now_ns)) {
        case Progress::none: return;
        case Progress::what_is_due: return run_engine(udp::Leaving::what_is_due);
        case Progress::all: engine_->end_streaming(); return run_engine(udp::Leaving::all);
    }
}

/// Omitted once only: a program that finds no room asks again, and then makes progress.
void UdpMemory::progress_to_post() {
    if (pacer_.on_post()) progress();
}

void UdpMemory::run_engine(udp::Leaving leaving) {
    if (helper_) helper_->attend();
    engine_->run(leaving);
}

Step UdpMemory::wait(Deadline deadline) {
    pacer_.on_wait();
    look_once();
    if (!engine_ || !engine_->naps()) progress();
    const Step step = waiter_.step(deadline);
    if (step == Step::check_peers) look_for_company();
    return step;
}

void UdpMemory::keep_applying(bool on) {
    if (helper_) helper_->set_always(on);
}

void UdpMemory::on_bound_violation(std::function<void(const BoundViolation&)> callback) {
    if (engine_) engine_->on_bound_violation(std::move(callback));
}

}  // namespace rmem
