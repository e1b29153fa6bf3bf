// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_outward.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/marks.hpp"

namespace rmem {

namespace {

constexpr std::size_t kMaxOutward = 64;        // then the other engines have to bring them, and…
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

/// What the node's engine has not applied yet and does not touch, since the log is claimed. What
/// has to wait for something that it is applying just now is tried again in the next run.
void EngineOutward::begin(std::uint64_t claimed_from) {
    brings_ = true;
    claimed_from_ = claimed_from;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        if (!bring(waiting_[i])) waiting_[kept++] = waiting_[i];
    }
    waiting_.resize(kept);
}

void EngineOutward::end(To to) {
    bring_come_round(to);
    brings_ = false;
}

void EngineOutward::note(const Flight& flight, const WireOutcome& outcome) {
    if (!brings_own_.get() && !logs_.is_claimed(own_.rank)) return;
    Write write{outcome.node, flight};
    write.flight.due_ns = outcome.time_ns;
    write.flight.stored_ns = arrival_.take_ahead(outcome);
    if (brings_ && waiting_.empty() && bring(write)) return;
    if (waiting_.size() == kMaxOutward) waiting_.pop_front();
    waiting_.push_back(write);
}

/// The position in the own log.
std::uint64_t EngineOutward::come_round_to() const noexcept {
    const EngineLogs::Flights& own = logs_.flights(own_.rank);
    for (std::uint64_t number = own.first(); number < own.end(); ++number) {
        if (own[number].due_ns == kNever) return own[number].before;
    }
    return logs_.fed(own_.rank);
}

/// What has come round is due everywhere. Runs of this engine while the log was not claimed have
/// let it pass.
void EngineOutward::bring_come_round(To to) {
    const std::uint64_t end = come_round_to();
    LogReader log(own_.ring.log(own_.rank));
    Write write;
    write.flight.due_ns = 0;
    for (write.node = 0; write.node < own_.config.nodes; ++write.node) {
        if (write.node == own_.node || !members_.is_alive(write.node)) continue;
        if (to == To::sleepers ? !is_asleep(write.node) : !has_words_of_users(write.node)) continue;
        NodeSlot& slot = own_.ring.node(write.node);
        const bool rests = is_at_rest(slot);  // before the look at what it has
        // (9) - this acquire-load synchronizes-with the release-exchange engine_node.hpp (1)
        std::uint64_t has = slot.applied[own_.rank].load(std::memory_order_acquire);
        if (has >= end || has < log.oldest()) continue;
        LogReader::Entry& entry = write.flight.entry;
        for (log.seek(has); has < end && log.peek(entry) == LogReader::Found::record;
             log.pass(entry)) {
            if (entry.next > end || (!rests && entry.position < claimed_from_)) break;
            if (!logs_.is_in_bank(entry.record)) break;
            put(write, has);
            has = entry.next;
        }
    }
}

/// Nobody has posted anything to them since they lay down, who would have woken them. So nothing of
/// what their node lacks is for them, and the order in which they would see it is of no matter.
bool EngineOutward::is_asleep(unsigned node) const noexcept {
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        // relaxed is enough: a rank's node is stored before it has joined
        const bool is_there = own_.ring.rank(r).node.load(std::memory_order_relaxed) == node &&
                              !own_.config.is_keeper(r);  // which waits for nothing
        if (is_there && own_.ring.is_joined(r) && !own_.ring.is_asleep(r)) return false;
    }
    return true;
}

/// Whether the node has what this node has seen of others: they may have written the same words,
/// before it. Its own engine stores what it lacks, in the order of its coming.
bool EngineOutward::has_words_of_users(unsigned node) const noexcept {
    const auto& applied = own_.ring.node(node).applied;
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        const std::uint64_t end = logs_.users_end(r);
        if (r == own_.rank || end == 0) continue;  // a ring may have many seats
        // (11) - this acquire-load synchronizes-with the release-exchange engine_node.hpp (1)
        if (applied[r].load(std::memory_order_acquire) < end) return false;
    }
    return true;
}

/// Whether the node's engine leaves this write to its writer: it does from the claim on, but a run
/// that began before may have the write in its hands if it was in the log by then.
bool EngineOutward::is_let_go(unsigned node, const Flight& flight) const noexcept {
    return flight.entry.position >= claimed_from_ || is_at_rest(own_.ring.node(node));
}

bool EngineOutward::is_next_of(unsigned node, const Flight& flight) const noexcept {
    if (!waiting_.empty() || !is_let_go(node, flight) || !has_words_of_users(node)) return false;
    // (8) - this acquire-load synchronizes-with the release-exchange engine_node.hpp (1)
    const std::uint64_t has =
        own_.ring.node(node).applied[own_.rank].load(std::memory_order_acquire);
    return has >= flight.before && has <= flight.entry.position &&
           flight.entry.position >= logs_[own_.rank].oldest();
}

/// False: an earlier write is not there yet.
bool EngineOutward::bring(const Write& write) {
    const Flight& flight = write.flight;
    // First: until then its engine may go on applying.
    const bool is_free = is_let_go(write.node, flight);
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
void EngineOutward::put(const Write& write, std::uint64_t has) {
    RMEM_CHECK_IF(false, brings_ && has <= write.flight.entry.position);
    const Flight& flight = write.flight;
    if (flight.stored_ns == 0) arrival_.store(logs_[own_.rank], flight.entry, write.node);
    RMEM_MARK("ring.stored-when-due");
    static_cast<void>(arrival_.note(write.node, own_.rank, flight, flight.due_ns));
    // (6) - this release-exchange synchronizes-with the acquire-load rmem/ring/applied.hpp (1);
    // relaxed is enough where it fails: nobody else applies what is claimed
    own_.ring.node(write.node)
        .applied[own_.rank]
        .compare_exchange_strong(has, flight.entry.next, std::memory_order_release,
                                 std::memory_order_relaxed);
}

}  // namespace rmem
