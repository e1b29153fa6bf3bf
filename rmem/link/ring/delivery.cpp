// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/delivery.hpp"

#include "rmem/base/check.hpp"
#include "rmem/ring/applied.hpp"
#include "rmem/ring/membership.hpp"
#include "rmem/ring/node_slot.hpp"

#include <algorithm>

namespace rmem {

RingDelivery::RingDelivery(Membership& member, InterruptBoard& interrupts, bool may)
    : ring_(member.ring()),
      node_(member.node()),
      rank_(member.rank()),
      incarnation_(member.incarnation()),
      takes_time_(ring_.config().timing.instant == 0),
      has_fences_(register_fences()),
      may_(may && !takes_time_ && has_fences_),
      board_(ring_.delivery()),
      log_(ring_.log(member.rank()).header()),
      own_bank_(ring_, node_),
      interrupts_(interrupts),
      sleepers_(ring_),
      // relaxed is enough: a number that it is not now, so that it looks around
      changes_seen_(board_.changes.load(std::memory_order_relaxed) - 1) {
    // What a former incarnation has left is the engines'.
    // (5) - this release-store synchronizes-with the acquire-loads engine_logs.cpp (3) and
    // engine_logs.cpp (5)
    log_.deliverer.store(0, std::memory_order_release);
}

void RingDelivery::look_around() {
    // (1) - this acquire-load synchronizes-with the release-add rmem/ring/delivery_board.hpp (1)
    changes_seen_ = board_.changes.load(std::memory_order_acquire);
    const RingConfig& config = ring_.config();
    is_each_wanted_ = is_needed_ = false;
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        const RankSlot& slot = ring_.rank(r);
        // relaxed is enough, for both: as the rest of what is read here, written before the change
        const bool wants = slot.wants_each_write.load(std::memory_order_relaxed) != 0;
        const bool needs = slot.needs_delivery.load(std::memory_order_relaxed) != 0;
        if ((!wants && !needs) || !ring_.is_alive(r)) continue;
        is_each_wanted_ = is_each_wanted_ || wants;
        is_needed_ = is_needed_ || (needs && r != rank_);
    }
    // relaxed is enough: as above
    is_timed_ = config.bound_ns != 0 || board_.recorders.load(std::memory_order_relaxed) != 0;
    find_banks();
    if (on_ && is_each_wanted_) stop();
}

void RingDelivery::find_banks() {
    settle();
    banks_.clear();
    nodes_.clear();
    for (unsigned n = 0; n < ring_.config().nodes; ++n) {
        const bool is_one = takes_time_ ? is_node_alive(ring_, n) : is_delivered_to(ring_.node(n));
        if (n == node_ || !is_one) continue;
        banks_.emplace_back(ring_, n);
        nodes_.push_back(n);
    }
}

/// Every live node has applied what lies below `head`, and no engine looks above it from now on.
/// Banks of nodes that were left before they had it are not kept.
void RingDelivery::begin(std::uint64_t head) {
    for (unsigned n = 0; n < ring_.config().nodes; ++n) {
        NodeSlot& slot = ring_.node(n);
        // relaxed is enough: a node that is taken in now goes on with the next number
        const std::uint32_t present = slot.present.load(std::memory_order_relaxed);
        if (present != 0 && applied_of(ring_, n, rank_) < head)
            slot.behind.store(present, std::memory_order_relaxed);  // enough: as above
    }
    find_banks();
    RMEM_CHECK_IF(false, may_ && !on_ && log_.head.load(std::memory_order_relaxed) == head);
    on_ = true;
    // (3) - this release-store synchronizes-with the acquire-loads rmem/ring/applied.hpp (3) and
    // engine_logs.cpp (4)
    log_.everywhere.store(head, std::memory_order_release);
    // (6) - this release-store synchronizes-with the acquire-load engine_logs.cpp (3)
    log_.deliverer.store(incarnation_, std::memory_order_release);
}

/// What lies above `everywhere`, and all that follows, is the engines'. They look again which logs
/// are theirs.
void RingDelivery::stop() noexcept {
    on_ = false;
    // (7) - this release-store synchronizes-with the acquire-load engine_logs.cpp (3)
    log_.deliverer.store(0, std::memory_order_release);
    board_.note_change();
}

bool RingDelivery::claim() {
    if (has_changed()) look_around();
    if (is_each_wanted_ || !has_fences_) return false;
    // relaxed is enough: stored by this thread
    claimed_from_ = log_.head.load(std::memory_order_relaxed);
    // (8) - this release-store synchronizes-with the acquire-load engine_logs.cpp (5)
    log_.deliverer.store(incarnation_, std::memory_order_release);
    return true;
}

bool RingDelivery::keeps_claim() {
    light_fence();
    if (has_changed()) look_around();
    return !is_each_wanted_;
}

bool RingDelivery::is_everywhere(std::uint64_t position) const noexcept {
    return std::all_of(nodes_.begin(), nodes_.end(), [&](unsigned n) {
        // relaxed is enough: it is asked by the thread that brings them
        return ring_.node(n).applied[rank_].load(std::memory_order_relaxed) >= position;
    });
}

void RingDelivery::release_claim() noexcept {
    // (9) - this release-store synchronizes-with the acquire-loads engine_logs.cpp (5) and
    // rmem/ring/membership.cpp (2)
    log_.deliverer.store(0, std::memory_order_release);
}

void RingDelivery::measure(const LogRecord& record) noexcept {
    const std::int64_t bound = ring_.config().bound_ns;
    const std::int64_t took = std::max<std::int64_t>(now_ns() - record.written_ns, 0);
    for (const unsigned n : nodes_) {
        NodeSlot& slot = ring_.node(n);
        slot.propagation.record_shared(static_cast<std::uint64_t>(took));
        // The wire takes no time: what is late is late by the host.
        if (bound != 0 && took > bound) slot.link.add_shared(LinkCounter::bound_missed_by_host);
    }
    if (counted_ >= kCounted) settle();
}

void RingDelivery::settle() noexcept {
    if (counted_ == 0) return;
    for (const unsigned n : nodes_) {
        Counters& counters = ring_.node(n).link;
        counters.add_shared(LinkCounter::writes_applied, counted_);
        counters.add_shared(LinkCounter::bytes_applied, counted_bytes_);
    }
    counted_ = 0;
    counted_bytes_ = 0;
}

void RingDelivery::tell(const LogRecord& record) noexcept {
    const std::size_t bytes = record.words * kWordBytes;
    sleepers_.wake(record.offset, bytes);
    if (interrupts_.anyone_watches()) interrupts_.written(record.offset, bytes);
}

}  // namespace rmem
