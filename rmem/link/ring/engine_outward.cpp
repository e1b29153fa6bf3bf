// SPDX-License-Identifier: Apache-2.0
// The own writes of a rank that waits until they are due, and brings them to the other nodes.

#include "rmem/base/marks.hpp"
#include "rmem/link/ring/engine.hpp"

namespace rmem {

namespace {

constexpr std::size_t kMostOutward = 64;       // then the other engines have to bring them, and…
constexpr std::int64_t kGiveUpNs = 1'000'000;  // …what could not be brought for so long

}  // namespace

bool RingEngine::run_and_deliver() {
    if (!lock_.try_lock()) return false;
    brings_ = true;
    deliver_outward();
    step(false);
    brings_ = false;
    report_violations();
    return true;
}

/// Whether a rank's writes are left to its process, which brings them as soon as they are due.
bool RingEngine::is_claimed(unsigned rank) const noexcept {
    // (5) - this acquire-load synchronizes-with the release-stores delivery.cpp (5), delivery.cpp
    // (8) and delivery.cpp (9)
    const std::uint32_t claimer = logs_[rank].header().deliverer.load(std::memory_order_acquire);
    return claimer != 0 && claimer != over_[rank];
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

/// Whether the node has all that comes before this write, and not the write.
bool RingEngine::is_next_of(unsigned node, const Flight& flight) const noexcept {
    // (8) - this acquire-load synchronizes-with the release-store engine.cpp (1)
    const std::uint64_t has = ring_.node(node).applied[rank_].load(std::memory_order_acquire);
    return outward_.empty() && has >= flight.before && has <= flight.entry.position &&
           flight.entry.position >= logs_[rank_].oldest();
}

/// False: an earlier write is not there yet.
bool RingEngine::deliver(const Outward& write) {
    const Flight& flight = write.flight;
    const LogRecord& record = flight.entry.record;
    NodeSlot& slot = ring_.node(write.node);
    // (7) - this acquire-load synchronizes-with the release-store engine.cpp (1)
    std::uint64_t has = slot.applied[rank_].load(std::memory_order_acquire);
    const bool is_given_up = flight.due_ns < step_ns_ - kGiveUpNs;
    if (has > flight.entry.position || is_given_up) return true;
    if (has < flight.before) return false;
    // This thread alone gives the log back, and not for a node that has died.
    if (flight.entry.position < logs_[rank_].oldest()) return true;
    if (flight.stored_ns == 0) {
        static_cast<void>(
            logs_[rank_].copy_words(flight.entry, ring_.bank(write.node) + record.offset));
    }
    RMEM_MARK("ring.stored-when-due");
    static_cast<void>(note_arrival(write.node, rank_, flight, flight.due_ns));
    // (6) - this release-exchange synchronizes-with the acquire-load rmem/ring/applied.hpp (1);
    // relaxed is enough where it fails: nobody else applies what is claimed
    slot.applied[rank_].compare_exchange_strong(has, flight.entry.next, std::memory_order_release,
                                                std::memory_order_relaxed);
    return true;
}

}  // namespace rmem
