// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/propagation_samples.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/ring/node_slot.hpp"

namespace rmem {

PropagationSamples::PropagationSamples(Membership& member)
    : node_(member.node()),
      sent_(member.slot().link),
      slot_(member.ring().node(node_)),
      stamps_(member.ring().stamps()),
      bound_ns_(member.ring().config().bound_ns != 0
                    ? member.ring().config().bound_ns
                    : rmem::bound_ns(member.ring().config().timing, member.ring().config().nodes)) {
}

void PropagationSamples::stamp(std::size_t offset, std::uint32_t value) noexcept {
    stamps_.put(offset, value, node_, now_ns());
}

void PropagationSamples::stamp_message(std::size_t offset, std::uint32_t value) noexcept {
    stamp(offset, value);
    sent_.add(LinkCounter::messages_sampled);
}

std::optional<BoundViolation> PropagationSamples::look(std::size_t offset, std::uint32_t value,
                                                       std::int64_t waited_since_ns) noexcept {
    const std::int64_t now = now_ns();
    const auto stamp = stamps_.find(offset, value, waited_since_ns, now);
    if (!stamp || stamp->origin == node_) return std::nullopt;
    const std::int64_t propagation = now - stamp->written_ns;
    slot_.propagation.record(static_cast<std::uint64_t>(propagation));
    if (bound_ns_ == 0 || propagation <= bound_ns_) return std::nullopt;
    slot_.link.add(LinkCounter::bound_missed_by_host);
    return BoundViolation{stamp->origin, offset, stamp->written_ns, propagation, true};
}

}  // namespace rmem
