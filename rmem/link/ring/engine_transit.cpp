// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_transit.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>

namespace rmem {

namespace {

constexpr std::int64_t kWriteWorkNs = 100;  // what a write costs us, at most

/// Whether a write of `origin` passes `node` behind `last`, in ring order.
bool lies_behind(unsigned node, unsigned last, unsigned origin, unsigned nodes) {
    const unsigned to_last = (last + nodes - origin) % nodes;
    return node == origin || (node + nodes - origin) % nodes > to_last;
}

}  // namespace

// ---- A wire that takes no time

std::int64_t EngineTransit::pass_at_once() {
    std::vector<unsigned>& news = logs_.news();
    for (const unsigned r : news) members_.meet(r);
    // Own writes first: the checker must know of them.
    std::partition(news.begin(), news.end(), [&](unsigned r) { return members_.is_of_node(r); });
    std::int64_t next = kNever;
    for (const unsigned r : news) next = std::min(next, pass_at_once(r));
    return next;
}

std::int64_t EngineTransit::pass_at_once(unsigned rank) {
    const std::int64_t now = own_.time.now();
    const bool is_own = members_.is_of_node(rank);
    Held& held = held_[rank];
    LogReader& log = logs_[rank];
    LogReader::Entry entry;
    while (logs_.has_news(rank) && logs_.peek(rank, entry)) {
        const LogRecord& record = entry.record;
        if (entry.next > held.seen_end) {
            held.seen_end = entry.next;
            held.published_ns = own_.time.publication_of(record);
        }
        const std::int64_t due = std::max(held.published_ns + record.delay_ns, held.due_ns);
        if (due > now && record.delay_ns != 0) return due;
        if (is_own && members_.is_awaited(rank, entry)) return now + EngineMembers::kHeldLookNs;
        RMEM_CHECK_IF(false, held.due_ns <= due);
        held.due_ns = due;
        const std::int64_t unseen = held.published_ns - record.written_ns;
        log.pass(entry);
        if (is_own) {
            arrival_.note_own(record);
            arrival_.come_round(log, rank, entry);
            continue;
        }
        if (unseen != 0 && (record.flags & LogRecord::kUntimed) == 0)
            own_.slot.link.add(LinkCounter::late_published);
        arrival_.arrive(log, rank, {.entry = entry, .unseen_ns = unseen}, due);
    }
    return kNever;
}

// ---- Turns of records

/// No packet waits for another one twice, at its source or where it passes: so the wire is clear
/// when each word that was written has had its place on a link twice, and the way round once.
void EngineTransit::begin_turn(bool is_watched) {
    RMEM_CHECK_IF(false, waiting_.empty());
    const TimingProfile& profile = wire_.model().profile();
    const std::int64_t round = round_ns(profile, own_.config.nodes);
    clear_ns_ = kNever;
    if (is_watched || wire_.has_faults()) return;
    if (own_.time.now() - own_.time.read_ns() <= round) return;  // mostly
    clear_ns_ = own_.time.read_ns() + round;
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        const EngineLogs::Flights& flights = logs_.flights(r);
        for (auto number = flights.first(); number != flights.end(); ++number)
            clear_ns_ += 2 * busy_ns(profile, flights[number].entry.record.words);
    }
}

void EngineTransit::depart(unsigned rank, const LogReader::Entry& entry) {
    const std::int64_t published = own_.time.publication_of(entry.record);
    const bool waits = may_wait(published, entry.record);
    if (members_.is_of_node(rank)) arrival_.note_own(entry.record);
    own_.time.add_work(kWriteWorkNs);
    const Waiting write{rank, logs_.take_up(rank, entry), published};
    if (!waits) return submit(write);
    waiting_.push_back(write);
    const TimingProfile& profile = wire_.model().profile();
    const std::int64_t round = round_ns(profile, own_.config.nodes);
    clear_ns_ = std::max(clear_ns_, published + round) + 2 * busy_ns(profile, entry.record.words);
}

/// False: nothing is known of the wire, or a fault makes the record late.
bool EngineTransit::may_wait(std::int64_t published_ns, const LogRecord& record) {
    if (clear_ns_ == kNever) return false;
    if (record.delay_ns != 0) {
        end_turn();
        clear_ns_ = kNever;
        return false;
    }
    if (published_ns > clear_ns_ && clear_ns_ <= own_.time.now()) settle_waiting();
    return true;
}

void EngineTransit::end_turn() {
    if (clear_ns_ <= own_.time.now()) settle_waiting();
    for (const Waiting& write : waiting_) submit(write);
    waiting_.clear();
}

/// They have come since, at their times at the earliest: what is late is the host.
void EngineTransit::settle_waiting() {
    let_come(clear_ns_);
    if (wire_.model().next_time_ns() != kNever) return;  // they are submitted, with what follows
    for (const Waiting& write : waiting_) {
        Flight& flight = logs_.flights(write.rank)[write.number];
        flight.due_ns = flight.entry.record.written_ns;
    }
    // In the order of their times.
    for (const Waiting& write : waiting_) settle(write.rank, write.number + 1);
    drop_if_idle();
    waiting_.clear();
}

void EngineTransit::submit(const Waiting& write) {
    Flight& flight = logs_.flights(write.rank)[write.number];
    flight.unseen_ns =
        wire_.submit(flight.entry.record, members_.node_of(write.rank),
                     EngineWire::tag_of(write.rank, write.number), write.published_ns);
}

// ---- On the wire

/// By single steps, so that the model does not pass the time of a record that is published late.
void EngineTransit::let_come(std::int64_t until_ns) {
    const WireModel& model = wire_.model();
    for (auto next = model.next_time_ns(); next <= until_ns; next = model.next_time_ns()) {
        own_.time.add_work(kWriteWorkNs);
        advance(next);
    }
    RMEM_CHECK_IF(false, !arrival_.is_ahead());
}

bool EngineTransit::await(std::int64_t end_ns) {
    EngineArrival::Coming coming;
    const std::int64_t end = std::min(end_ns, own_.time.now() + kAwaitNs);
    const std::int64_t due = prepare(coming, end) ? coming.due_ns : wire_.model().next_time_ns();
    if (due > end) return false;
    do {
        if (logs_.has_any_news()) return false;
        own_.time.go_on();
    } while (own_.time.now() < due);
    const bool is_here = coming.node == own_.node;
    // A writer may have claimed its log since.
    if (coming.record.words == 0 || (is_here && logs_.is_claimed(EngineWire::rank_of(coming.tag))))
        return true;
    arrival_.store_ahead(coming);
    return true;
}

/// Looks up the next write that comes to a bank, until that time. False if there is none, or
/// something has to be done before it.
bool EngineTransit::prepare(EngineArrival::Coming& coming, std::int64_t until_ns) const {
    const unsigned origin = outward_.brings() ? own_.node : EngineMembers::kNoNode;
    const auto arrival = wire_.model().next_arrival(own_.node, origin, until_ns);
    if (!arrival) return false;
    const unsigned rank = EngineWire::rank_of(arrival->tag);
    const std::uint64_t number = EngineWire::number_of(arrival->tag);
    const EngineLogs::Flights& flights = logs_.flights(rank);
    if (number < flights.first()) return false;
    const LogReader::Entry& entry = flights[number].entry;
    const bool is_next =
        arrival->node == own_.node
            ? number == flights.first() && !own_.has_applied(rank, entry) && !logs_.is_claimed(rank)
            : rank == own_.rank && outward_.is_next_of(arrival->node, flights[number]);
    if (!is_next || !logs_[rank].load_words(entry, coming.words.data())) return false;
    coming.due_ns = arrival->time_ns;
    coming.tag = arrival->tag;
    coming.node = arrival->node;
    coming.record = entry.record;
    return true;
}

void EngineTransit::on_outcome(const WireOutcome& outcome) {
    const unsigned rank = EngineWire::rank_of(outcome.tag);
    const std::uint64_t number = EngineWire::number_of(outcome.tag);
    EngineLogs::Flights& flights = logs_.flights(rank);
    if (number < flights.first()) return;  // done here; a stray, or news of other nodes
    switch (outcome.kind) {
        case WireOutcomeKind::arrived: {
            if (outcome.node != own_.node) {
                if (rank == own_.rank) outward_.note(flights[number], outcome);
                return;
            }
            RMEM_CHECK_IF(false, outcome.time_ns <= own_.time.now());
            flights[number].due_ns = outcome.time_ns;
            flights[number].stored_ns = arrival_.take_ahead(outcome);
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

void EngineTransit::settle(unsigned rank, std::uint64_t come) {
    const EngineLogs::Flights& flights = logs_.flights(rank);
    come_[rank] = std::max(come_[rank], come);
    while (!flights.empty()) {
        const Flight& next = flights.front();
        if (next.due_ns == kNever) {
            if (!next.gone && flights.first() >= come_[rank]) return;
            logs_.drop_before(rank, flights.first() + 1);
            continue;
        }
        const bool is_own = members_.is_of_node(rank);
        const bool waits = is_own ? members_.is_awaited(rank, next.entry)
                                  : !own_.has_applied(rank, next.entry) && logs_.is_claimed(rank);
        if (waits) {
            holds_ = true;
            return;
        }
        is_own ? arrival_.come_round(logs_[rank], rank, next.entry)
               : arrival_.arrive(logs_[rank], rank, next, next.due_ns);
        logs_.pop_flight(rank);
    }
}

void EngineTransit::settle_held() {
    holds_ = false;
    for (unsigned r = 0; r < own_.seats.get(); ++r) settle(r, 0);
}

void EngineTransit::drop_if_idle() {
    if (wire_.model().next_time_ns() != kNever) return;
    for (unsigned r = 0; r < own_.seats.get(); ++r) settle(r, logs_.flights(r).end());
}

std::int64_t EngineTransit::next_due_ns() const noexcept {
    const std::int64_t due = logs_.has_flights() ? wire_.model().next_time_ns() : kNever;
    return holds_ ? std::min(due, own_.time.now() + EngineMembers::kHeldLookNs) : due;
}

std::uint32_t EngineTransit::look_at_fifo() {
    advance(own_.time.now());
    return wire_.model().fifo_occupancy(own_.node);
}

}  // namespace rmem
