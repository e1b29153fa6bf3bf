// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/applied.hpp"
#include "rmem/ring/delivery_board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kWriteWorkNs = 100;     // what a write costs us, at most
constexpr std::int64_t kForgetNs = 5'000'000;  // what is older, and here, the wire has forgotten
constexpr std::uint64_t kUnitsAway = 256;      // unread of a log: then one looks how far it is over
constexpr std::int64_t kRestNs = 20'000;       // at least, since the wire was quiet
constexpr std::int64_t kTickCanWaitNs = 5'000'000;
constexpr std::int64_t kHeldLookNs = 100'000;  // whom it waits for may have died

/// Whether a write of `origin` passes `node` behind `last`, in ring order.
bool lies_behind(unsigned node, unsigned last, unsigned origin, unsigned nodes) {
    const unsigned to_last = (last + nodes - origin) % nodes;
    return node == origin || (node + nodes - origin) % nodes > to_last;
}

}  // namespace

// ---- Joining and leaving

RingEngine::RingEngine(Membership& member, const FaultPlan& faults, bool check_writers,
                       bool sees_each_write)
    : member_(member),
      own_(member),
      wire_(own_, faults.wire),
      members_(own_, wire_),
      applier_(own_.ring, own_.ring.rank(own_.rank).engine_applier),
      lock_(own_.ring, own_.node, own_.rank, member.incarnation()),
      interrupts_(own_.ring, own_.node, own_.rank),
      sleepers_(own_.ring),
      is_delivered_(own_.ranks),
      wants_each_write_(sees_each_write || check_writers || !faults.wire.empty()) {
    const RingConfig& config = own_.config;
    if (check_writers) checker_.emplace(own_.node, config.bank_bytes());
    for (unsigned r = 0; r < config.seats(); ++r) logs_.emplace_back(own_.ring.log(r));
    for (unsigned n = 0; n < config.nodes; ++n) banks_.emplace_back(own_.ring, n);
    held_.resize(config.seats());
    next_.resize(config.seats());
    news_.reserve(config.seats());
    if (!lock_.lock(Deadline::in(kDefaultJoinTimeoutNs))) {
        throw Error(
            Errc::timed_out,
            fmt::format(
                "the engine of node {} of ring '{}' is held by another process of the node, which "
                "makes no progress; if it is stopped, continue it (SIGCONT) or end it",
                own_.node, config.name));
    }
    // relaxed is enough: taking in notes the change
    own_.ring.rank(own_.rank).wants_each_write.store(1, std::memory_order_relaxed);
    own_.ring.rank(own_.rank).needs_delivery.store(0,
                                                   std::memory_order_relaxed);  // enough: as above
    const bool is_new = take_in(own_.ring, own_.node, own_.rank, member.incarnation());
    members_.look_at_all();
    own_.time.begin();
    restart();
    step(false, is_new ? Logs::all : Logs::undelivered);
    want_each_write(wants_each_write_);
    lock_.unlock();
}

RingEngine::~RingEngine() {
    if (!member_.held() || !lock_.lock(Deadline::in(kLeaveNs))) return;
    take_out(own_.ring, own_.node, own_.rank);
    lock_.unlock();
}

/// Ranks that deliver look at it when they write next.
void RingEngine::want_each_write(bool wants) noexcept {
    // relaxed is enough: the change that is noted orders it
    own_.ring.rank(own_.rank).wants_each_write.store(wants ? 1 : 0, std::memory_order_relaxed);
    own_.ring.delivery().note_change();
}

/// Starts over from what this node's bank holds.
void RingEngine::restart() {
    const RingConfig& config = own_.config;
    flights_.assign(config.seats(), Flights());
    come_.assign(config.seats(), 0);
    fed_.assign(config.seats(), 0);
    users_end_.assign(config.seats(), 0);
    outward_.clear();
    in_flight_ = 0;
    holds_ = false;
    own_.time.note_read(true);
    lapped_ = false;
    members_.forget_nodes();
    std::int64_t start = own_.time.now();
    for (unsigned r = 0; r < config.seats(); ++r) {
        logs_[r].seek(std::max(applied_of(own_.ring, own_.node, r), logs_[r].oldest()));
        fed_[r] = users_end_[r] = logs_[r].position();
        LogReader::Entry entry;
        const bool has_written = logs_[r].peek(entry) == LogReader::Found::record;
        if (has_written) start = std::min(start, entry.record.written_ns);
        members_.take_over(r, has_written);
    }
    wire_.restart(members_.node_alive(), start);
}

void RingEngine::on_bound_violation(ViolationHook hook) {
    if (!lock_.lock(Deadline::in(kLeaveNs))) return;
    hook_ = std::move(hook);
    want_each_write(wants_each_write_ || hook_);
    lock_.unlock();
}

void RingEngine::on_race(RaceChecker::Report report) {
    if (!checker_ || !lock_.lock(Deadline::in(kLeaveNs))) return;
    checker_->set_report(std::move(report));
    lock_.unlock();
}

// ---- Running

bool RingEngine::run(Caller caller) {
    return run_and_report(caller, false);
}

bool RingEngine::run_for_fifo() {
    return run_and_report(Caller::rank, true);
}

bool RingEngine::run_and_report(Caller caller, bool for_fifo) {
    if (!lock_.try_lock()) return false;
    step(for_fifo);
    if (caller == Caller::helper && applied_any_) own_.slot.link.add(LinkCounter::engine_takeovers);
    report_violations();
    return true;
}

/// Lets go of the lock first.
void RingEngine::report_violations() {
    if (violations_.empty()) [[likely]] {
        return lock_.unlock();
    }
    const std::vector<BoundViolation> violations = std::exchange(violations_, {});
    const ViolationHook hook = hook_;
    lock_.unlock();
    for (const BoundViolation& violation : violations) hook(violation);
}

void RingEngine::step(bool for_fifo, Logs logs) noexcept {
    own_.time.begin();
    const std::int64_t now = own_.time.now();
    const std::int64_t end = for_fifo ? now : now + 2 * kAwaitNs;
    which_logs_ = logs;
    applied_any_ = arrived_any_ = false;
    if (lapped_)
        restart();  // another process of this node has applied what we did not read in time
    if (holds_) settle_held();
    find_news();
    if (wire_.takes_time()) {
        if (!news_.empty()) feed();
        own_.time.note_read();
        do {
            let_come(own_.time.now());
            RMEM_CHECK_IF(false, stored_.at_ns == 0);
        } while (!arrived_any_ && await(end));
        if (in_flight_ != 0) drop_if_idle();
        if (for_fifo) {
            wire_.model().advance(now, [this](const WireOutcome& outcome) { on_outcome(outcome); });
            fifo_words_.set(wire_.model().fifo_occupancy(own_.node));
        }
    } else {
        pass_instantly(now);
        own_.time.note_read();
    }
    // Not while a write is on its way, if it can wait: to look at members takes system calls.
    const std::int64_t wait = in_flight_ != 0 || for_fifo ? kTickCanWaitNs : 0;
    if (members_.is_tick_due(now - wait)) tick(now);
    if (applied_any_) wake_node();
    own_.time.end();
    if (wire_.takes_time()) {
        const std::int64_t due = in_flight_ != 0 ? wire_.model().next_time_ns() : kNever;
        next_due_ns_.set(holds_ ? std::min(due, now + kHeldLookNs) : due);
    }
    busy_.set(in_flight_ != 0);
    note_idleness();
    runs_.add();
}

// ---- Input: from the logs into the model

void RingEngine::find_news() {
    news_.clear();
    // (2) - this acquire-load synchronizes-with the release-add rmem/ring/delivery_board.hpp (1)
    const std::uint32_t changes = own_.ring.delivery().changes.load(std::memory_order_acquire);
    if (changes != changes_seen_.get() || members_.is_tick_due(own_.time.now())) {
        for (auto& is_delivered : is_delivered_) is_delivered.set(false);
        if (changes_seen_.get() != changes) members_.meet_new();
        changes_seen_.set(changes);
    }
    for (unsigned r = 0; r < logs_.size(); ++r) {
        if (!is_delivered_[r].get() && has_news(r)) news_.push_back(r);
    }
}

bool RingEngine::has_any_news() {
    for (unsigned r = 0; r < rank_count(); ++r) {
        if (!is_delivered_[r].get() && has_news(r)) return true;
    }
    return false;
}

/// Whether a rank's log has records for this engine.
bool RingEngine::has_news(unsigned rank) {
    LogReader& log = logs_[rank];
    if (!log.refresh()) return false;
    if (wire_.takes_time()) {
        pass_quiet(rank);
        return log.refresh();
    }
    const LogHeader& header = log.header();
    // (3) - this acquire-load synchronizes-with the release-stores delivery.cpp (5), delivery.cpp
    // (6) and delivery.cpp (7)
    const std::uint32_t deliverer = header.deliverer.load(std::memory_order_acquire);
    if (deliverer != 0 && !members_.was_found_dead(rank, deliverer) && which_logs_ != Logs::all) {
        is_delivered_[rank].set(true);
        return false;
    }
    // (4) - this acquire-load synchronizes-with the release-stores delivery.hpp (2) and
    // delivery.cpp (3)
    const std::uint64_t everywhere = header.everywhere.load(std::memory_order_acquire);
    if (log.position() < everywhere) log.seek(everywhere);
    return log.refresh();
}

/// Of a node that was away: what its bank has, and had left the wire before that was quiet, it need
/// not read.
void RingEngine::pass_quiet(unsigned rank) noexcept {
    LogReader& log = logs_[rank];
    if (written(rank) - log.position() < kUnitsAway || !flights_[rank].empty()) return;
    TimingProfile profile = own_.config.timing;
    profile.promised_ns = 0;  // what the wire needs is asked for
    const std::int64_t rest = std::max(kRestNs, 2 * bound_ns(profile, own_.config.nodes));
    const std::uint64_t quiet = log.quiet_before(own_.time.now() - rest);
    if (quiet <= log.position() || quiet > applied_of(own_.ring, own_.node, rank)) return;
    log.seek(quiet);
    fed_[rank] = users_end_[rank] = quiet;
}

/// The next record of a rank, checked. False when there is none that can be used now.
bool RingEngine::peek(unsigned rank, LogReader::Entry& entry) {
    LogReader& log = logs_[rank];
    const LogRecord& record = entry.record;
    LogReader::Found found = log.peek(entry);
    // Where the writer has brought it long ago: what the wire does now does not depend on it.
    while (found == LogReader::Found::record && record.written_ns < own_.time.now() - kForgetNs &&
           own_.has_applied(rank, entry)) {
        log.pass(entry);
        fed_[rank] = users_end_[rank] = entry.next;
        found = log.peek(entry);
    }
    if (found == LogReader::Found::none) return false;
    if (found == LogReader::Found::record && members_.node_of(rank) != EngineMembers::kNoNode &&
        is_in_bank(record))
        return true;
    if (found == LogReader::Found::lapped) {
        lapped_ = true;
        return false;
    }
    own_.slot.link.add(LinkCounter::records_refused);
    log.skip_all();
    drop_before(rank, flights_[rank].end());
    own_.set_applied(rank, log.position());
    return false;
}

bool RingEngine::is_in_bank(const LogRecord& record) const noexcept {
    const std::uint64_t bytes = std::uint64_t{record.words} * kWordBytes;
    const std::size_t all = own_.config.bank_bytes();
    return bytes <= all && record.offset <= all - bytes;
}

/// Merges what is new in the order of its times, since ranks of one node share its FIFO.
void RingEngine::feed() {
    std::erase_if(news_, [this](unsigned r) {
        members_.meet(r);
        return !peek(r, next_[r]);
    });
    begin_backlog();
    while (!news_.empty()) {
        auto first = news_.begin();
        for (auto it = first + 1; it != news_.end(); ++it) {
            if (next_[*it].record.written_ns < next_[*first].record.written_ns) first = it;
        }
        const unsigned rank = *first;
        if (!add_to_backlog(rank, next_[rank])) depart(rank, next_[rank]);
        if (!logs_[rank].refresh() || !peek(rank, next_[rank])) news_.erase(first);
    }
    end_backlog();
}

void RingEngine::depart(unsigned rank, const LogReader::Entry& entry) {
    const std::int64_t published_ns = own_.time.publication_of(entry.record);
    take_up(rank, entry);
    submit(rank, flights_[rank].end() - 1, published_ns);
}

/// Its engine has it in its hands from now on.
RingEngine::Flight& RingEngine::take_up(unsigned rank, const LogReader::Entry& entry) {
    const LogRecord& record = entry.record;
    if (checker_ && members_.is_of_node(rank))
        checker_->wrote(record.offset, record.words, record.written_ns);
    Flight flight;
    flight.entry = entry;
    flight.before = std::exchange(fed_[rank], entry.next);
    if (record.offset < own_.config.user_bytes) users_end_[rank] = entry.next;
    flights_[rank].push_back(flight);
    ++in_flight_;
    logs_[rank].pass(entry);
    own_.time.add_work(kWriteWorkNs);
    return flights_[rank].back();
}

void RingEngine::submit(unsigned rank, std::uint64_t number, std::int64_t published_ns) {
    Flight& flight = flights_[rank][number];
    flight.unseen_ns = wire_.submit(flight.entry.record, members_.node_of(rank),
                                    EngineWire::tag_of(rank, number), published_ns);
}

// ---- Output: from the model into the bank

/// Profile `none`: a record in a log is due, unless a fault delays it.
void RingEngine::pass_instantly(std::int64_t now) {
    in_flight_ = 0;
    std::int64_t next = kNever;
    next_due_ns_.set(next);
    if (news_.empty()) return;
    for (const unsigned r : news_) members_.meet(r);
    // Own writes first: the checker must know of them.
    std::partition(news_.begin(), news_.end(), [&](unsigned r) { return members_.is_of_node(r); });
    for (const unsigned r : news_) {
        LogReader::Entry entry;
        while (has_news(r) && peek(r, entry)) {
            const LogRecord& record = entry.record;
            Held& held = held_[r];
            if (entry.next > held.seen_end) {
                held.seen_end = entry.next;
                held.published_ns = own_.time.publication_of(record);
            }
            const std::int64_t due = std::max(held.published_ns + record.delay_ns, held.due_ns);
            const bool is_own = members_.is_of_node(r);
            const bool is_late = due > now && record.delay_ns != 0;
            if (is_late || (is_own && is_awaited(r, entry))) {
                ++in_flight_;
                next = std::min(next, is_late ? due : now + kHeldLookNs);
                next_due_ns_.set(next);
                break;
            }
            held.due_ns = due;
            const std::int64_t unseen = held.published_ns - record.written_ns;
            logs_[r].pass(entry);
            if (!is_own) {
                if (unseen != 0 && (record.flags & LogRecord::kUntimed) == 0)
                    own_.slot.link.add(LinkCounter::late_published);
                arrive(r, {.entry = entry, .unseen_ns = unseen}, due);
                continue;
            }
            if (checker_) checker_->wrote(record.offset, record.words, record.written_ns);
            come_round(r, entry);
        }
    }
}

/// By single steps, so that the model does not pass the time of a record that is published late.
void RingEngine::let_come(std::int64_t until_ns) {
    const auto sink = [this](const WireOutcome& outcome) { on_outcome(outcome); };
    for (auto next = wire_.model().next_time_ns(); next <= until_ns;
         next = wire_.model().next_time_ns()) {
        own_.time.add_work(kWriteWorkNs);
        wire_.model().advance(next, sink);
    }
}

void RingEngine::on_outcome(const WireOutcome& outcome) {
    const unsigned rank = EngineWire::rank_of(outcome.tag);
    const std::uint64_t number = EngineWire::number_of(outcome.tag);
    Flights& flights = flights_[rank];
    if (number < flights.first()) return;  // done here; a stray, or news of other nodes
    switch (outcome.kind) {
        case WireOutcomeKind::arrived: {
            if (outcome.node != own_.node) {
                if (rank == own_.rank && (brings_own_.get() || is_claimed(rank)))
                    note_outward(flights[number], outcome);
                return;
            }
            RMEM_CHECK_IF(false, outcome.time_ns <= own_.time.now());
            flights[number].due_ns = outcome.time_ns;
            flights[number].stored_ns = take_stored(outcome);
            return settle(rank, number + 1);
        }
        case WireOutcomeKind::returned: {
            RMEM_CHECK_IF(false, outcome.time_ns <= own_.time.now());
            if (outcome.origin == own_.node) flights[number].due_ns = outcome.time_ns;
            return settle(rank, number + 1);
        }
        case WireOutcomeKind::lost: {
            if (!lies_behind(own_.node, outcome.node, outcome.origin, own_.config.nodes)) return;
            flights[number].gone = true;
            return settle(rank, 0);
        }
        case WireOutcomeKind::stray:
        case WireOutcomeKind::sent: return;
    }
}

/// Applies what has come, in its order, as far as it is not left to its writer, and has not to wait
/// for others. Flights before `come` come now or never.
void RingEngine::settle(unsigned rank, std::uint64_t come) {
    Flights& flights = flights_[rank];
    come_[rank] = std::max(come_[rank], come);
    while (!flights.empty()) {
        const Flight& next = flights.front();
        if (next.due_ns == kNever) {
            if (!next.gone && flights.first() >= come_[rank]) return;
            drop_before(rank, flights.first() + 1);
            continue;
        }
        const bool is_own = members_.is_of_node(rank);
        const bool waits = is_own ? is_awaited(rank, next.entry)
                                  : !own_.has_applied(rank, next.entry) && is_claimed(rank);
        if (waits) {
            holds_ = true;
            return;
        }
        is_own ? come_round(rank, next.entry) : arrive(rank, next, next.due_ns);
        flights.pop_front();
        --in_flight_;
    }
}

void RingEngine::settle_held() {
    holds_ = false;
    for (unsigned r = 0; r < rank_count(); ++r) settle(r, 0);
}

/// Flights before `until` never come: later ones have come.
void RingEngine::drop_before(unsigned rank, std::uint64_t until) {
    Flights& flights = flights_[rank];
    while (flights.first() < until) {
        if (!members_.is_of_node(rank) && !own_.has_applied(rank, flights.front().entry)) {
            own_.slot.link.add(LinkCounter::lost_on_wire);
        }
        own_.set_applied(rank, flights.front().entry.next);
        flights.pop_front();
        --in_flight_;
    }
}

/// Where nothing moves any more, nothing arrives.
void RingEngine::drop_if_idle() {
    if (wire_.model().next_time_ns() != kNever) return;
    for (unsigned r = 0; r < flights_.size(); ++r) settle(r, flights_[r].end());
}

/// The engine is idle when each rank in the ring delivers.
void RingEngine::note_idleness() noexcept {
    bool is_idle = !wire_.takes_time();
    for (unsigned r = 0; is_idle && r < rank_count(); ++r) {
        if (r == own_.rank || is_delivered_[r].get()) continue;
        const RankSlot& slot = own_.ring.rank(r);
        // relaxed is enough, throughout: one that comes notes a change after it has said so
        const bool is_member = slot.state.load(std::memory_order_relaxed) ==
                               static_cast<std::uint32_t>(RankState::joined);
        const std::uint32_t deliverer =
            logs_[r].header().deliverer.load(std::memory_order_relaxed);  // enough: as above
        const auto incarnation =
            slot.incarnation.load(std::memory_order_relaxed);  // enough: as above
        is_idle = !is_member || deliverer != 0 || members_.was_found_dead(r, incarnation);
    }
    is_idle_.set(is_idle);
}

bool RingEngine::is_idle() const noexcept {
    // relaxed is enough: a look that comes a little later is soon enough
    return is_idle_.get() &&
           own_.ring.delivery().changes.load(std::memory_order_relaxed) == changes_seen_.get();
}

void RingEngine::tick(std::int64_t now) {
    members_.tick(now, [this](unsigned r) { return flights_[r].empty() && !has_news(r); });
    wire_.tick(now);
}

std::uint64_t RingEngine::written(unsigned rank) const noexcept {
    // relaxed is enough: it is compared, and run() looks before it reads
    return logs_[rank].header().head.load(std::memory_order_relaxed);
}

std::uint64_t RingEngine::written_in_all() const noexcept {
    std::uint64_t all = 0;
    for (unsigned r = 0; r < rank_count(); ++r) {
        if (!is_delivered_[r].get()) all += written(r);
    }
    return all;
}

bool RingEngine::lacks_writes(bool own) const noexcept {
    for (unsigned r = 0; r < rank_count(); ++r) {
        // relaxed is enough: a hint, as is the position that is looked at
        const bool is_brought = logs_[r].header().deliverer.load(std::memory_order_relaxed) != 0;
        if (is_delivered_[r].get() || (!own && (r == own_.rank || is_brought))) continue;
        if (applied_of(own_.ring, own_.node, r) < written(r)) return true;
    }
    return false;
}

}  // namespace rmem
