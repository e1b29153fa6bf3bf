// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/applied.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rmem {

namespace {

constexpr std::int64_t kWriteWorkNs = 100;          // what a write costs us, at most
constexpr std::int64_t kOldestNs = 10'000'000'000;  // no write is believed to be older, nor…
constexpr std::int64_t kNewestNs = 1'000'000'000;   // …further in the future
constexpr std::int64_t kForgetNs = 5'000'000;  // what is older, and here, the wire has forgotten
constexpr std::uint64_t kUnitsAway = 256;      // unread of a log: then one looks how far it is over
constexpr std::int64_t kRestNs = 20'000;       // at least, since the wire was quiet
constexpr std::int64_t kTickCanWaitNs = 5'000'000;
constexpr std::int64_t kHeldLookNs = 100'000;  // whom it waits for may have died
constexpr std::int64_t kPublishNs = 200;       // a record is seen within this of its time, or late

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
      ring_(member.ring()),
      node_(member.node()),
      rank_(member.rank()),
      slot_(ring_.node(node_)),
      applier_(ring_, ring_.rank(rank_).engine_applier),
      lock_(ring_, node_, rank_, member.incarnation()),
      punctuality_(ring_.config(), slot_),
      interrupts_(ring_, node_, rank_),
      sleepers_(ring_),
      wire_faults_(faults.wire),
      is_delivered_(ring_.config().seats()),
      over_(ring_.config().seats()),
      seen_alive_(ring_.config().seats()),
      wants_each_write_(sees_each_write || check_writers || !faults.wire.empty()) {
    const RingConfig& config = ring_.config();
    if (check_writers) checker_.emplace(node_, config.bank_bytes());
    for (unsigned r = 0; r < config.seats(); ++r) logs_.emplace_back(ring_.log(r));
    for (unsigned n = 0; n < config.nodes; ++n) banks_.emplace_back(ring_, n);
    held_.resize(config.seats());
    rank_node_.assign(config.seats(), kNoNode);
    rank_alive_.resize(config.seats());
    next_.resize(config.seats());
    news_.reserve(config.seats());
    for (auto& cables : cable_cut_) cables.resize(config.nodes);
    if (!lock_.lock(Deadline::in(kDefaultJoinTimeoutNs))) {
        throw Error(
            Errc::timed_out,
            fmt::format(
                "the engine of node {} of ring '{}' is held by another process of the node, which "
                "makes no progress; if it is stopped, continue it (SIGCONT) or end it",
                node_, config.name));
    }
    // relaxed is enough: taking in notes the change
    ring_.rank(rank_).wants_each_write.store(1, std::memory_order_relaxed);
    ring_.rank(rank_).needs_delivery.store(0, std::memory_order_relaxed);  // enough: as above
    const bool is_new = take_in(ring_, node_, rank_, member.incarnation());
    for (unsigned r = 0; r < config.seats(); ++r) {
        // relaxed is enough: as in is_over()
        const auto incarnation = ring_.rank(r).incarnation.load(std::memory_order_relaxed);
        // One that has never been there is not asked after: it takes a system call for each.
        set_seen_alive(r, incarnation != 0 && ring_.is_alive(r));
        if (!rank_alive_[r]) over_[r] = incarnation;
    }
    restart(now_ns());
    step(false, is_new ? Logs::all : Logs::undelivered);
    want_each_write(wants_each_write_);
    lock_.unlock();
}

RingEngine::~RingEngine() {
    if (!member_.held() || !lock_.lock(Deadline::in(kLeaveNs))) return;
    take_out(ring_, node_, rank_);
    lock_.unlock();
}

/// Ranks that deliver look at it when they write next.
void RingEngine::want_each_write(bool wants) noexcept {
    // relaxed is enough: the change that is noted orders it
    ring_.rank(rank_).wants_each_write.store(wants ? 1 : 0, std::memory_order_relaxed);
    ring_.delivery().note_change();
}

/// Starts over from what this node's bank holds.
void RingEngine::restart(std::int64_t now) {
    const RingConfig& config = ring_.config();
    flights_.assign(config.seats(), Flights());
    come_.assign(config.seats(), 0);
    fed_.assign(config.seats(), 0);
    users_end_.assign(config.seats(), 0);
    outward_.clear();
    in_flight_ = 0;
    holds_ = false;
    looked_ns_ = 0;
    lapped_ = false;
    node_alive_.assign(config.nodes, false);
    node_alive_[node_] = true;
    told_ns_.assign(config.nodes, 0);
    std::int64_t start = now;
    for (unsigned r = 0; r < config.seats(); ++r) {
        logs_[r].seek(std::max(applied_of(ring_, node_, r), logs_[r].oldest()));
        fed_[r] = users_end_[r] = logs_[r].position();
        LogReader::Entry entry;
        if (logs_[r].peek(entry) == LogReader::Found::record) {
            start = std::min(start, std::max(entry.record.written_ns, now - kOldestNs));
            set_seen_alive(r, true);  // as in meet_origin()
        }
        find_node_of(r);
        if (rank_alive_[r] && rank_node_[r] != kNoNode) node_alive_[rank_node_[r]] = true;
    }
    if (config.timing.instant == 0 || !wire_faults_.empty()) make_model(start);
}

void RingEngine::make_model(std::int64_t start_ns) {
    const RingConfig& config = ring_.config();
    TimingProfile profile = config.timing;
    profile.overflow =
        FifoPolicy::hold_off;  // the writer decides what is lost, for all banks alike
    model_.emplace(profile, config.nodes, start_ns);
    for (unsigned n = 0; n < config.nodes; ++n) {
        if (!node_alive_[n]) model_->set_alive(n, false, start_ns);
    }
    for (const WireFault& fault : wire_faults_) {
        const std::int64_t at = std::max(fault_time(fault), start_ns);
        if (fault.kind == WireFault::Kind::cable) {
            model_->set_cable(fault.ring, fault.place, fault.up, at);
        } else {
            model_->set_alive(fault.place, fault.up, at);
        }
    }
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
    if (caller == Caller::helper && applied_any_) slot_.link.add(LinkCounter::engine_takeovers);
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
    const std::int64_t now = now_ns();
    const std::int64_t end = for_fifo ? now : now + 2 * kAwaitNs;
    which_logs_ = logs;
    punctuality_.begin(now);
    work_ns_ = 0;
    step_ns_ = now;
    applied_any_ = arrived_any_ = false;
    if (lapped_)
        restart(now);  // another process of this node has applied what we did not read in time
    if (holds_) settle_held();
    find_news();
    if (model_) {
        if (!news_.empty()) feed();
        looked_ns_ = now;
        do {
            let_come(step_ns_);
            RMEM_CHECK_IF(false, stored_.at_ns == 0);
        } while (!arrived_any_ && await(end));
        if (in_flight_ != 0) drop_if_idle();
        if (for_fifo) {
            model_->advance(now, [this](const WireOutcome& outcome) { on_outcome(outcome); });
            fifo_words_.set(model_->fifo_occupancy(node_));
        }
    } else {
        pass_instantly(now);
        looked_ns_ = now;
    }
    // Not while a write is on its way, if it can wait: to look at members takes system calls.
    const std::int64_t wait = in_flight_ != 0 || for_fifo ? kTickCanWaitNs : 0;
    if (now >= next_tick_ns_ + wait) tick(now);
    if (applied_any_) wake_node();
    if (work_ns_ != 0) punctuality_.look(now_ns(), work_ns_);
    punctuality_.end();
    if (model_) {
        const std::int64_t due = in_flight_ != 0 ? model_->next_time_ns() : kNever;
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
    const std::uint32_t changes = ring_.delivery().changes.load(std::memory_order_acquire);
    if (changes != changes_seen_.get() || step_ns_ >= next_tick_ns_) {
        for (auto& is_delivered : is_delivered_) is_delivered.set(false);
        if (changes_seen_.get() != changes) meet_new_ranks();
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
    if (model_) {
        pass_quiet(rank);
        return log.refresh();
    }
    const LogHeader& header = log.header();
    // (3) - this acquire-load synchronizes-with the release-stores delivery.cpp (5), delivery.cpp
    // (6) and delivery.cpp (7)
    const std::uint32_t deliverer = header.deliverer.load(std::memory_order_acquire);
    if (deliverer != 0 && deliverer != over_[rank] && which_logs_ != Logs::all) {
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
    TimingProfile profile = ring_.config().timing;
    profile.promised_ns = 0;  // what the wire needs is asked for
    const std::int64_t rest = std::max(kRestNs, 2 * bound_ns(profile, ring_.config().nodes));
    const std::uint64_t quiet = log.quiet_before(step_ns_ - rest);
    if (quiet <= log.position() || quiet > applied_of(ring_, node_, rank)) return;
    log.seek(quiet);
    fed_[rank] = users_end_[rank] = quiet;
}

/// The next record of a rank, checked. False when there is none that can be used now.
bool RingEngine::peek(unsigned rank, LogReader::Entry& entry) {
    LogReader& log = logs_[rank];
    const LogRecord& record = entry.record;
    LogReader::Found found = log.peek(entry);
    // Where the writer has brought it long ago: what the wire does now does not depend on it.
    while (found == LogReader::Found::record && record.written_ns < step_ns_ - kForgetNs &&
           done_already(rank, entry)) {
        log.pass(entry);
        fed_[rank] = users_end_[rank] = entry.next;
        found = log.peek(entry);
    }
    if (found == LogReader::Found::none) return false;
    if (found == LogReader::Found::record && rank_node_[rank] != kNoNode && is_in_bank(record))
        return true;
    if (found == LogReader::Found::lapped) {
        lapped_ = true;
        return false;
    }
    slot_.link.add(LinkCounter::records_refused);
    log.skip_all();
    drop_before(rank, flights_[rank].end());
    set_applied(rank, log.position());
    return false;
}

bool RingEngine::is_in_bank(const LogRecord& record) const noexcept {
    const std::uint64_t bytes = std::uint64_t{record.words} * kWordBytes;
    const std::size_t all = ring_.config().bank_bytes();
    return bytes <= all && record.offset <= all - bytes;
}

/// Merges what is new in the order of its times, since ranks of one node share its FIFO.
void RingEngine::feed() {
    std::erase_if(news_, [this](unsigned r) {
        meet_origin(r);
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

void RingEngine::find_node_of(unsigned rank) {
    // relaxed is enough: a rank's node is stored before its records are published
    const std::uint32_t node = ring_.rank(rank).node.load(std::memory_order_relaxed);
    const bool joined =
        ring_.rank(rank).incarnation.load(std::memory_order_relaxed) != 0;  // enough: likewise
    rank_node_[rank] = joined && node < ring_.config().nodes ? node : kNoNode;
}

/// A rank that has written: looks up where it is, and takes its node into the model's ring if that
/// was not known. One that has died since is found out as any other: what it wrote is sent.
void RingEngine::meet_origin(unsigned rank) {
    find_node_of(rank);
    const unsigned node = rank_node_[rank];
    if (node == kNoNode || node_alive_[node]) return;
    set_seen_alive(rank, true);
    set_node_alive(node, true, 0);  // at once: before what it wrote
}

void RingEngine::depart(unsigned rank, const LogReader::Entry& entry) {
    const std::int64_t published_ns = publication_of(entry.record);
    take_up(rank, entry);
    submit(rank, flights_[rank].end() - 1, published_ns);
}

/// Its engine has it in its hands from now on.
RingEngine::Flight& RingEngine::take_up(unsigned rank, const LogReader::Entry& entry) {
    const LogRecord& record = entry.record;
    if (checker_ && rank_node_[rank] == node_)
        checker_->wrote(record.offset, record.words, record.written_ns);
    Flight flight;
    flight.entry = entry;
    flight.before = std::exchange(fed_[rank], entry.next);
    if (record.offset < ring_.config().user_bytes) users_end_[rank] = entry.next;
    flights_[rank].push_back(flight);
    ++in_flight_;
    logs_[rank].pass(entry);
    work_ns_ += kWriteWorkNs;
    return flights_[rank].back();
}

void RingEngine::submit(unsigned rank, std::uint64_t number, std::int64_t published_ns) {
    Flight& flight = flights_[rank][number];
    const LogRecord& record = flight.entry.record;
    const unsigned origin = rank_node_[rank];
    WireWrite write;
    write.origin = static_cast<std::uint16_t>(origin);
    write.interrupt = (record.flags & LogRecord::kInterrupt) != 0;
    write.bytes = record.words * static_cast<std::uint32_t>(kWordBytes);
    write.offset = record.offset;
    write.time_ns = std::clamp(published_ns, step_ns_ - kOldestNs, step_ns_ + kNewestNs);
    // The model loses what a node has in its FIFO when it comes in, and this is not of before.
    if (told_ns_[origin] != 0) write.time_ns = std::max(write.time_ns, told_ns_[origin] + 1);
    write.extra_delay_ns = record.delay_ns;
    write.tag = std::uint64_t{rank} << kTagShift | number;
    flight.unseen_ns = std::max(write.time_ns, model_->now_ns()) - record.written_ns;
    model_->submit(write);
    if (flight.unseen_ns > kPublishNs) slot_.link.add(LinkCounter::late_published);
}

/// When a write counts as done: at its time, unless its writer was stopped before it had published
/// it, which shows in that we looked in between and did not see it.
std::int64_t RingEngine::publication_of(const LogRecord& record) noexcept {
    return looked_ns_ - record.written_ns > kPublishNs ? looked_ns_ : record.written_ns;
}

// ---- Output: from the model into the bank

/// Profile `none`: a record in a log is due, unless a fault delays it.
void RingEngine::pass_instantly(std::int64_t now) {
    in_flight_ = 0;
    std::int64_t next = kNever;
    next_due_ns_.set(next);
    if (news_.empty()) return;
    for (const unsigned r : news_) meet_origin(r);
    // Own writes first: the checker must know of them.
    std::partition(news_.begin(), news_.end(), [&](unsigned r) { return rank_node_[r] == node_; });
    for (const unsigned r : news_) {
        LogReader::Entry entry;
        while (has_news(r) && peek(r, entry)) {
            const LogRecord& record = entry.record;
            Held& held = held_[r];
            if (entry.next > held.seen_end) {
                held.seen_end = entry.next;
                held.published_ns = publication_of(record);
            }
            const std::int64_t due = std::max(held.published_ns + record.delay_ns, held.due_ns);
            const bool is_own = rank_node_[r] == node_;
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
                    slot_.link.add(LinkCounter::late_published);
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
    for (auto next = model_->next_time_ns(); next <= until_ns; next = model_->next_time_ns()) {
        work_ns_ += kWriteWorkNs;
        model_->advance(next, sink);
    }
}

void RingEngine::on_outcome(const WireOutcome& outcome) {
    const unsigned rank = rank_of(outcome.tag);
    const std::uint64_t number = number_of(outcome.tag);
    Flights& flights = flights_[rank];
    if (number < flights.first()) return;  // done here; a stray, or news of other nodes
    switch (outcome.kind) {
        case WireOutcomeKind::arrived: {
            if (outcome.node != node_) {
                if (rank == rank_ && (brings_own_.get() || is_claimed(rank)))
                    note_outward(flights[number], outcome);
                return;
            }
            RMEM_CHECK_IF(false, outcome.time_ns <= step_ns_);
            flights[number].due_ns = outcome.time_ns;
            flights[number].stored_ns = take_stored(outcome);
            return settle(rank, number + 1);
        }
        case WireOutcomeKind::returned: {
            RMEM_CHECK_IF(false, outcome.time_ns <= step_ns_);
            if (outcome.origin == node_) flights[number].due_ns = outcome.time_ns;
            return settle(rank, number + 1);
        }
        case WireOutcomeKind::lost: {
            if (!lies_behind(node_, outcome.node, outcome.origin, ring_.config().nodes)) return;
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
        const bool is_own = rank_node_[rank] == node_;
        const bool waits = is_own ? is_awaited(rank, next.entry)
                                  : !done_already(rank, next.entry) && is_claimed(rank);
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
        if (rank_node_[rank] != node_ && !done_already(rank, flights.front().entry)) {
            slot_.link.add(LinkCounter::lost_on_wire);
        }
        set_applied(rank, flights.front().entry.next);
        flights.pop_front();
        --in_flight_;
    }
}

/// Where nothing moves any more, nothing arrives.
void RingEngine::drop_if_idle() {
    if (model_->next_time_ns() != kNever) return;
    for (unsigned r = 0; r < flights_.size(); ++r) settle(r, flights_[r].end());
}

bool RingEngine::done_already(unsigned rank, const LogReader::Entry& entry) const noexcept {
    // relaxed is enough: the engine's lock orders it
    return entry.position < slot_.applied[rank].load(std::memory_order_relaxed);
}

void RingEngine::set_applied(unsigned rank, std::uint64_t position) noexcept {
    // relaxed is enough: as in done_already()
    auto& applied = slot_.applied[rank];
    std::uint64_t has = applied.load(std::memory_order_relaxed);
    // A writer that has claimed its log may raise it meanwhile.
    // (1) - this release-exchange synchronizes-with the acquire-loads rmem/ring/applied.hpp (1) and
    // engine_outward.cpp (7), engine_outward.cpp (8), engine_outward.cpp (9) and
    // engine_outward.cpp (11); relaxed is enough where it fails: nothing is read behind it
    while (position > has &&
           !applied.compare_exchange_weak(has, position, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
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
        if (is_delivered_[r].get() || (!own && (r == rank_ || is_brought))) continue;
        if (applied_of(ring_, node_, r) < written(r)) return true;
    }
    return false;
}

}  // namespace rmem
