// SPDX-License-Identifier: Apache-2.0
// The last step of a write: it falls due, and is in a bank.

#include "rmem/base/fence.hpp"
#include "rmem/link/ring/engine.hpp"
#include "rmem/ring/waiting.hpp"

#include <algorithm>
#include <utility>

namespace rmem {

namespace {

constexpr std::size_t kMaxViolations = 1024;  // reported per run; all are counted

}  // namespace

/// Waits until the model's next event is due, but not beyond `end_ns`. False: that, or there is
/// something new in the logs, for the next run. If an arrival comes soon it waits for that instead,
/// and stores it: all that leads to the store is done before, so that nothing but the store is left
/// when its time has come.
bool RingEngine::await(std::int64_t end_ns) {
    Coming coming;
    const std::int64_t end = std::min(end_ns, own_.time.now() + kAwaitNs);
    const std::int64_t due = prepare(coming, end) ? coming.due_ns : wire_.model().next_time_ns();
    if (due > end) return false;
    do {
        if (has_any_news()) return false;
        own_.time.go_on();
    } while (own_.time.now() < due);
    // A writer may have claimed its log since.
    if (coming.bytes == 0 ||
        (coming.node == own_.node && is_claimed(EngineWire::rank_of(coming.tag))))
        return true;
    const Applying applying(applier_, coming.offset, coming.bytes / kWordBytes);
    banks_[coming.node].store(coming.offset, coming.words.data(), coming.bytes, applying.any_twin(),
                              coming.has_flag);
    stored_ = {coming.tag, coming.node, now_ns()};
    return true;
}

/// Looks up the next write that comes to a bank, until that time. False: there is none, or
/// something has to be done before it.
bool RingEngine::prepare(Coming& coming, std::int64_t until_ns) const {
    const auto arrival = wire_.model().next_arrival(
        own_.node, brings_ ? own_.node : EngineMembers::kNoNode, until_ns);
    if (!arrival) return false;
    const unsigned rank = EngineWire::rank_of(arrival->tag);
    const std::uint64_t number = EngineWire::number_of(arrival->tag);
    const Flights& flights = flights_[rank];
    if (number < flights.first()) return false;
    const LogReader::Entry& entry = flights[number].entry;
    const bool is_next =
        arrival->node == own_.node
            ? number == flights.first() && !own_.has_applied(rank, entry) && !is_claimed(rank)
            : rank == own_.rank && is_next_of(arrival->node, flights[number]);
    if (!is_next || !logs_[rank].load_words(entry, coming.words.data())) return false;
    coming.due_ns = arrival->time_ns;
    coming.tag = arrival->tag;
    coming.node = arrival->node;
    coming.bytes = entry.record.words * kWordBytes;
    coming.offset = entry.record.offset;
    coming.has_flag = (entry.record.flags & LogRecord::kFlagFirst) != 0;
    return true;
}

/// When this arrival was stored already; 0: it was not.
std::int64_t RingEngine::take_stored(const WireOutcome& arrival) noexcept {
    if (stored_.tag != arrival.tag || stored_.node != arrival.node) return 0;
    return std::exchange(stored_.at_ns, 0);
}

/// A write of another node is due here.
void RingEngine::arrive(unsigned rank, const Flight& flight, std::int64_t due_ns) {
    const LogReader::Entry& entry = flight.entry;
    if (own_.has_applied(rank, entry)) return;
    const LogRecord& record = entry.record;
    // A writer leaves alone what a live node has not applied.
    if (flight.stored_ns == 0) store(logs_[rank], entry, own_.node);
    const auto violation = note_arrival(own_.node, rank, flight, due_ns);
    if (violation && hook_ && violations_.size() < kMaxViolations)
        violations_.push_back(*violation);
    own_.slot.brought.add();
    applied_any_ = true;
    if (checker_) {
        own_.slot.link.add(LinkCounter::races_found,
                           checker_->arrives(members_.node_of(rank), record.offset, record.words,
                                             record.written_ns, due_ns));
    }
    own_.set_applied(rank, entry.next);
}

/// A write of this node is back at its source.
void RingEngine::come_round(unsigned rank, const LogReader::Entry& entry) {
    if (own_.has_applied(rank, entry)) return;
    if ((entry.record.flags & LogRecord::kMeLast) != 0) {
        store(logs_[rank], entry, own_.node);
        applied_any_ = true;
    }
    own_.set_applied(rank, entry.next);
}

/// A sleeping rank of this node may be waiting for these writes. The own one applies them itself
/// when it is woken: it sleeps for nothing that is here.
void RingEngine::wake_node() noexcept {
    light_fence();
    for (unsigned r = 0; r < rank_count(); ++r) {
        if (!members_.is_of_node(r)) continue;
        // relaxed is enough: the fence orders this load after the stores before it
        const std::uint32_t attention = own_.ring.attention()[r].load(std::memory_order_relaxed);
        const std::uint32_t own = r == own_.rank ? kAttentionSleeping | kAttentionTaking : 0;
        const std::uint32_t asked = attention & kWritesWake & ~own;
        if (asked != 0) wake_asked(own_.ring, r, asked);
    }
}

/// What a log holds by now, into a node's bank.
void RingEngine::store(const LogReader& log, const LogReader::Entry& entry, unsigned node) {
    std::array<std::uint32_t, kMaxRecordWords> words;
    if (!log.load_words(entry, words.data())) return;
    const LogRecord& record = entry.record;
    const Applying applying(applier_, record.offset, record.words);
    banks_[node].store(record.offset, words.data(), record.words * kWordBytes, applying.any_twin(),
                       (record.flags & LogRecord::kFlagFirst) != 0);
}

/// Measures and counts a write that is in a node's bank now, and wakes those that want it.
std::optional<BoundViolation> RingEngine::note_arrival(unsigned node, unsigned rank,
                                                       const Flight& flight, std::int64_t due_ns) {
    const LogRecord& record = flight.entry.record;
    NodeSlot& slot = own_.ring.node(node);
    arrived_any_ = true;
    Punctuality::Arrival arrival;
    arrival.origin = members_.node_of(rank);
    arrival.offset = record.offset;
    arrival.words = record.words;
    arrival.queued_words = record.queued_words;
    arrival.written_ns = record.written_ns;
    arrival.unseen_ns = flight.unseen_ns;
    arrival.due_ns = due_ns;
    arrival.applied_ns = flight.stored_ns != 0 ? flight.stored_ns : now_ns();
    own_.time.look(arrival.applied_ns);
    std::optional<BoundViolation> violation;
    // A sleeper that was brought the messages of others was not late.
    const bool is_timed = due_ns != 0 || record.offset < own_.config.user_bytes;
    if (is_timed && (record.flags & LogRecord::kUntimed) == 0)
        violation = own_.time.punctuality().arrived(arrival, slot);
    const std::size_t bytes = record.words * kWordBytes;
    slot.link.add_shared(LinkCounter::writes_applied);  // engines and writers count here
    slot.link.add_shared(LinkCounter::bytes_applied, bytes);
    // Also a rank that its writer has woken too early.
    if (sleepers_.is_wanted(record.offset, bytes)) sleepers_.wake(record.offset, bytes);
    if (interrupts_.anyone_watches()) {
        interrupts_.applied_at(node, arrival.origin, record.offset, bytes,
                               (record.flags & LogRecord::kInterrupt) != 0);
    }
    return violation;
}

}  // namespace rmem
