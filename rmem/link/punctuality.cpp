// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/punctuality.hpp"

#include <algorithm>

namespace rmem {

Punctuality::Punctuality(const RingConfig& config, NodeSlot& slot)
    : config_(config),
      slot_(slot),
      bound_ns_(config.bound_ns != 0 ? config.bound_ns
                                     : rmem::bound_ns(config.timing, config.nodes)) {}

std::int64_t Punctuality::bound_of(const Arrival& arrival) const noexcept {
    if (config_.bound_ns != 0 || config_.timing.promised_ns != 0) return bound_ns_;
    return rmem::bound_ns(config_.timing, config_.nodes, arrival.words + arrival.queued_words);
}

void Punctuality::note_lateness(const Arrival& arrival, NodeSlot& slot) const noexcept {
    if (arrival.due_ns <= gap_end_ns_) {
        slot.link.add_shared(LinkCounter::late_by_host);
        return;
    }
    const auto lateness =
        static_cast<std::uint64_t>(std::max<std::int64_t>(arrival.applied_ns - arrival.due_ns, 0));
    slot.lateness.record_shared(lateness);
    slot.link.raise_shared_to(LinkCounter::late_max_ns, lateness);
}

std::optional<BoundViolation> Punctuality::arrived(const Arrival& arrival,
                                                   NodeSlot& slot) const noexcept {
    const std::int64_t propagation =
        std::max<std::int64_t>(arrival.applied_ns - arrival.written_ns, 0);
    slot.propagation.record_shared(static_cast<std::uint64_t>(propagation));
    const bool has_due_time = arrival.due_ns != kWhenItComes;
    if (has_due_time) note_lateness(arrival, slot);
    const std::int64_t certain = propagation - arrival.doubt_ns;
    if (is_in_time(certain)) return std::nullopt;
    const std::int64_t bound = bound_of(arrival);
    if (certain <= bound) return std::nullopt;
    BoundViolation violation{arrival.origin, arrival.offset, arrival.written_ns, propagation,
                             false};
    violation.by_host =
        has_due_time && arrival.due_ns - arrival.written_ns - arrival.unseen_ns <= bound;
    slot.link.add_shared(violation.by_host ? LinkCounter::bound_missed_by_host
                                           : LinkCounter::bound_violations);
    return violation;
}

bool Punctuality::arrived_in_time(std::int64_t propagation_ns, std::int64_t doubt_ns,
                                  std::uint64_t writes) noexcept {
    if (!is_in_time(propagation_ns - doubt_ns)) return false;
    slot_.propagation.record(static_cast<std::uint64_t>(propagation_ns), writes);
    return true;
}

}  // namespace rmem
