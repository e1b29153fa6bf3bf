// SPDX-License-Identifier: Apache-2.0
// The own writes of a rank that waits until they are due, and brings them to the other nodes.

#include "rmem/base/marks.hpp"
#include "rmem/link/ring/engine.hpp"
#include "rmem/ring/applied.hpp"

namespace rmem {

namespace {

constexpr std::size_t kMostOutward = 64;       // then the other engines have to bring them, and…
constexpr std::int64_t kGiveUpNs = 1'000'000;  // …what could not be brought for so long

/// Whether no run of the node's engine has begun before the claim: none has anything of the own log
/// in its hands, and what it has applied is seen from now on.
bool is_at_rest(NodeSlot& slot) noexcept {
    // (10) - this acq_rel add synchronizes-with the release-store of the last holder
    // engine_lock.hpp (2); and the acquire-exchange of the next one, engine_lock.hpp (1), with it,
    // so that this one sees the claim
    return slot.engine_holder.fetch_add(0, std::memory_order_acq_rel) == 0;
}

}  // namespace

bool RingEngine::run_and_deliver(std::uint64_t claimed_from, To to) {
    if (!lock_.try_lock()) return false;
    brings_ = true;
    claimed_from_ = claimed_from;
    deliver_outward();
    step(false);
    deliver_come_round(to);
    brings_ = false;
    report_violations();
    return true;
}

/// Whether a rank's writes are left to its process, which brings them as soon as they are due.
bool RingEngine::is_claimed(unsigned rank) const noexcept {
    // (5) - this acquire-load synchronizes-with the release-stores delivery.cpp (5), delivery.cpp
    // (8) and delivery.cpp (9)
    const std::uint32_t claimer = logs_[rank].header().deliverer.load(std::memory_order_acquire);
    return claimer != 0 && !members_.was_found_dead(rank, claimer);
}

void RingEngine::note_outward(const Flight& flight, const WireOutcome& outcome) {
    Outward write{outcome.node, flight};
    write.flight.due_ns = outcome.time_ns;
    write.flight.stored_ns = take_stored(outcome);
    if (brings_ && outward_.empty() && deliver(write)) return;
    if (outward_.size() == kMostOutward) outward_.pop_front();
    outward_.push_back(write);
}

/// What the node's engine has not applied yet and does not touch, since the log is claimed. What
/// has to wait for something that it is applying just now is tried again in the next run.
void RingEngine::deliver_outward() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < outward_.size(); ++i) {
        if (!deliver(outward_[i])) outward_[kept++] = outward_[i];
    }
    outward_.resize(kept);
}

/// The position in the own log.
std::uint64_t RingEngine::come_round_to() const noexcept {
    const Flights& own = flights_[own_.rank];
    for (std::uint64_t number = own.first(); number < own.end(); ++number) {
        if (own[number].due_ns == kNever) return own[number].before;
    }
    return fed_[own_.rank];
}

/// What has come round is due everywhere. Runs of this engine while the log was not claimed have
/// let it pass.
void RingEngine::deliver_come_round(To to) {
    const std::uint64_t end = come_round_to();
    LogReader log(own_.ring.log(own_.rank));
    Outward write;
    write.flight.due_ns = 0;
    for (write.node = 0; write.node < own_.config.nodes; ++write.node) {
        if (write.node == own_.node || !members_.is_alive(write.node)) continue;
        if (to == To::sleepers ? !is_asleep(write.node) : !has_words_of_users(write.node)) continue;
        const bool rests =
            is_at_rest(own_.ring.node(write.node));  // before the look at what it has
        // (9) - this acquire-load synchronizes-with the release-exchange engine_node.hpp (1)
        std::uint64_t has =
            own_.ring.node(write.node).applied[own_.rank].load(std::memory_order_acquire);
        if (has >= end || has < log.oldest()) continue;
        LogReader::Entry& entry = write.flight.entry;
        for (log.seek(has); has < end && log.peek(entry) == LogReader::Found::record;
             log.pass(entry)) {
            if (entry.next > end || (!rests && entry.position < claimed_from_)) break;
            if (!is_in_bank(entry.record)) break;
            put(write, has);
            has = entry.next;
        }
    }
}

/// Nobody has posted anything to them since they lay down, who would have woken them. So nothing of
/// what their node lacks is for them, and the order in which they would see it is of no matter.
bool RingEngine::is_asleep(unsigned node) const noexcept {
    for (unsigned r = 0; r < own_.config.ranks; ++r) {
        // relaxed is enough: a rank's node is stored before it has joined
        const bool is_there = own_.ring.rank(r).node.load(std::memory_order_relaxed) == node;
        if (is_there && own_.ring.is_joined(r) && !own_.ring.is_asleep(r)) return false;
    }
    return true;
}

/// Whether the node has what this node has seen of others: they may have written the same words,
/// before it. Its own engine stores what it lacks, in the order of its coming.
bool RingEngine::has_words_of_users(unsigned node) const noexcept {
    const auto& applied = own_.ring.node(node).applied;
    for (unsigned r = 0; r < rank_count(); ++r) {
        if (r == own_.rank || users_end_[r] == 0) continue;  // a ring may have many seats
        // (11) - this acquire-load synchronizes-with the release-exchange engine_node.hpp (1)
        if (applied[r].load(std::memory_order_acquire) < users_end_[r]) return false;
    }
    return true;
}

/// Whether the node's engine leaves this write to its writer: it does from the claim on, but a run
/// that began before may have the write in its hands if it was in the log by then.
bool RingEngine::is_let_go(const Outward& write) const noexcept {
    return write.flight.entry.position >= claimed_from_ || is_at_rest(own_.ring.node(write.node));
}

/// Whether the node has all that comes before this write, and not the write.
bool RingEngine::is_next_of(unsigned node, const Flight& flight) const noexcept {
    if (!outward_.empty() || !is_let_go({node, flight}) || !has_words_of_users(node)) return false;
    // (8) - this acquire-load synchronizes-with the release-exchange engine_node.hpp (1)
    const std::uint64_t has =
        own_.ring.node(node).applied[own_.rank].load(std::memory_order_acquire);
    return has >= flight.before && has <= flight.entry.position &&
           flight.entry.position >= logs_[own_.rank].oldest();
}

/// False: an earlier write is not there yet.
bool RingEngine::deliver(const Outward& write) {
    const Flight& flight = write.flight;
    const bool is_free = is_let_go(write);  // first: until then its engine may go on applying
    // (7) - this acquire-load synchronizes-with the release-exchange engine_node.hpp (1)
    const std::uint64_t has =
        own_.ring.node(write.node).applied[own_.rank].load(std::memory_order_acquire);
    const bool is_given_up = flight.due_ns < own_.time.now() - kGiveUpNs;
    if (has > flight.entry.position || is_given_up) return true;
    if (has < flight.before || !is_free || !has_words_of_users(write.node)) return false;
    // This thread alone gives the log back, and not for a node that has died.
    if (flight.entry.position >= logs_[own_.rank].oldest()) put(write, has);
    return true;
}

/// Stores it into the node's bank, which has what lies below `has`.
void RingEngine::put(const Outward& write, std::uint64_t has) {
    const Flight& flight = write.flight;
    NodeSlot& slot = own_.ring.node(write.node);
    if (flight.stored_ns == 0) store(logs_[own_.rank], flight.entry, write.node);
    RMEM_MARK("ring.stored-when-due");
    static_cast<void>(note_arrival(write.node, own_.rank, flight, flight.due_ns));
    // (6) - this release-exchange synchronizes-with the acquire-load rmem/ring/applied.hpp (1);
    // relaxed is enough where it fails: nobody else applies what is claimed
    slot.applied[own_.rank].compare_exchange_strong(
        has, flight.entry.next, std::memory_order_release, std::memory_order_relaxed);
}

/// With write-me-last: whether a live node lacks this write of this one. The wire has carried it
/// there, but a process that the host has put aside takes it later.
bool RingEngine::is_awaited(unsigned rank, const LogReader::Entry& entry) const noexcept {
    return (entry.record.flags & LogRecord::kMeLast) != 0 &&
           members_.anyone_lacks(rank, entry.next);
}

}  // namespace rmem
