// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_arrival.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/ring/waiting/waiting.hpp"

namespace rmem {

namespace {

constexpr std::size_t kMaxViolations = 1024;  // reported per run; all are counted

}  // namespace

EngineArrival::EngineArrival(EngineNode& own, const EngineMembers& members, bool check_writers)
    : own_(own),
      members_(members),
      applier_(own.ring, own.ring.rank(own.rank).engine_applier),
      interrupts_(own.ring, own.node, own.rank),
      sleepers_(own.ring) {
    if (check_writers) checker_.emplace(own.node, own.config.bank_bytes());
    for (unsigned n = 0; n < own.config.nodes; ++n) banks_.emplace_back(own.ring, n);
}

void EngineArrival::arrive(const LogReader& log, unsigned rank, const Flight& flight,
                           std::int64_t due_ns) {
    const LogReader::Entry& entry = flight.entry;
    if (own_.has_applied(rank, entry)) return;
    const LogRecord& record = entry.record;
    // A writer leaves alone what a live node has not applied.
    if (flight.stored_ns == 0) store(log, entry, own_.node);
    const auto violation = note(own_.node, rank, flight, due_ns);
    if (violation && hook_ && violations_.size() < kMaxViolations)
        violations_.push_back(*violation);
    own_.slot.brought.add();
    applied_any_ = true;
    if (checker_) {
        own_.slot.link.add(LinkCounter::races_found,
                           checker_->arrives(members_.node_of(rank), record.offset, record.words,
                                             record.written_ns, due_ns, record.part()));
    }
    own_.set_applied(rank, entry.next);
}

void EngineArrival::come_round(const LogReader& log, unsigned rank, const LogReader::Entry& entry) {
    if (own_.has_applied(rank, entry)) return;
    if ((entry.record.flags & LogRecord::kMeLast) != 0) {
        store(log, entry, own_.node);
        applied_any_ = true;
    }
    own_.set_applied(rank, entry.next);
}

void EngineArrival::store_ahead(const Coming& coming) {
    RMEM_CHECK_IF(false, !is_ahead());
    const Applying applying(applier_, coming.record.offset, coming.record.words,
                            coming.record.part());
    banks_[coming.node].store(coming.record, coming.words.data(), applying.any_twin());
    ahead_ = {coming.tag, coming.node, now_ns()};
}

/// The own rank applies what it waits for itself when it is woken: it sleeps for nothing that is
/// here.
void EngineArrival::wake_node() const noexcept {
    light_fence();
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        if (!members_.is_of_node(r)) continue;
        // relaxed is enough: the fence orders this load after the stores before it
        const std::uint32_t attention = own_.ring.attention()[r].load(std::memory_order_relaxed);
        const std::uint32_t own = r == own_.rank ? kAttentionSleeping | kAttentionTaking : 0;
        const std::uint32_t asked = attention & kWritesWake & ~own;
        if (asked != 0) wake_asked(own_.ring, r, asked);
    }
}

void EngineArrival::store(const LogReader& log, const LogReader::Entry& entry,
                          unsigned node) const {
    std::array<std::uint32_t, kMaxRecordWords> words;
    if (!log.load_words(entry, words.data())) return;
    const LogRecord& record = entry.record;
    const Applying applying(applier_, record.offset, record.words, record.part());
    banks_[node].store(record, words.data(), applying.any_twin());
}

std::optional<BoundViolation> EngineArrival::note(unsigned node, unsigned rank,
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
