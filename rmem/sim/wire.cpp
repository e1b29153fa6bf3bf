// SPDX-License-Identifier: Apache-2.0
#include "rmem/sim/wire.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/limits.hpp"

#include <fmt/format.h>

namespace rmem::sim {

namespace {

void check(const Topology& t) {
    const std::uint32_t bridges = t.rings > 1 ? 1 : 0;
    if (t.rings < 1 || t.rings > kMaxNodes || t.nodes_per_ring < 1 ||
        t.nodes_per_ring > kMaxNodes - bridges) {
        throw Error(
            Errc::bad_node_count,
            fmt::format("a wire has one ring of 1 to {} nodes, or up to {} rings of 1 to {} "
                        "nodes and a bridge each, not {} of {}",
                        kMaxNodes, kMaxNodes, kMaxNodes - 1, t.rings, t.nodes_per_ring));
    }
    if (t.bridge_ns < 0) {
        throw Error(Errc::bad_profile,
                    fmt::format("a bridge takes 0 ns or more, not {} ns", t.bridge_ns));
    }
}

/// A bridge's FIFO loses nothing; a ring has one policy.
TimingProfile held_off(TimingProfile profile) {
    profile.overflow = FifoPolicy::hold_off;
    return profile;
}

}  // namespace

Wire::Wire(const TimingProfile& profile, const Topology& topology, std::int64_t start_ns)
    : topology_(topology), now_ns_(start_ns) {
    check(topology);
    if (topology.rings == 1) {
        rings_.emplace_back(profile, topology.nodes_per_ring, start_ns);
        return;
    }
    for (std::uint32_t r = 0; r < topology.rings; ++r) {
        rings_.emplace_back(held_off(profile), topology.nodes_per_ring + 1, start_ns);
    }
    rings_.emplace_back(held_off(profile), topology.rings, start_ns);
    next_ = FirstTime(rings_.size());
}

WireSubmit Wire::submit(const WireWrite& write) {
    if (rings_.size() == 1) [[likely]]
        return rings_.front().submit(write);
    if (write.origin >= topology_.nodes()) return WireSubmit::refused;
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(carried_.size()));
        carried_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    WireWrite inner = write;
    inner.origin = static_cast<std::uint16_t>(place_of(write.origin));
    inner.tag = index;
    at_now(ring_of(write.origin));  // which counts what is late
    const WireSubmit result = submit_on(ring_of(write.origin), inner);
    if (result == WireSubmit::refused) return result;
    free_.pop_back();
    carried_[index] = {write.tag,           write.offset, write.bytes,
                       topology_.rings + 1, write.origin, write.interrupt};
    return result;
}

WireSubmit Wire::submit_on(std::size_t ring, const WireWrite& write) {
    const WireSubmit result = rings_[ring].submit(write);
    next_.set(ring, rings_[ring].next_time_ns());
    return result;
}

/// The ring with the least time does what it has to do then. A write that crosses a bridge is
/// submitted to its next ring no earlier, so no ring gets a write of its past.
void Wire::advance_one() {
    const std::size_t ring = next_.index();
    RMEM_CHECK(next_.time_ns() >= now_ns_);
    now_ns_ = next_.time_ns();
    inner_.clear();
    outcomes_.clear();
    rings_[ring].advance(now_ns_, [this](const WireOutcome& o) { inner_.push_back(o); });
    next_.set(ring, rings_[ring].next_time_ns());
    for (const WireOutcome& outcome : inner_) on_outcome(ring, outcome);
}

void Wire::on_outcome(std::size_t ring, const WireOutcome& outcome) {
    if (outcome.kind == WireOutcomeKind::returned) return finish(outcome);
    const bool at_bridge = !is_leaf(ring) || outcome.node == topology_.nodes_per_ring;
    if (!at_bridge) {
        const Carried& write = carried_[outcome.tag];
        WireOutcome seen = outcome;
        seen.tag = write.tag;
        seen.origin = write.origin;
        seen.node = static_cast<std::uint16_t>(ring * topology_.nodes_per_ring + outcome.node);
        outcomes_.push_back(seen);
    } else if (outcome.kind == WireOutcomeKind::arrived) {
        // On the backbone to the leaf of that bridge, on a leaf to the backbone, from its own
        // bridge.
        const std::size_t to = is_leaf(ring) ? topology_.rings : outcome.node;
        const auto from =
            static_cast<std::uint16_t>(is_leaf(ring) ? ring : topology_.nodes_per_ring);
        forward(to, from, outcome.tag, outcome.time_ns + topology_.bridge_ns);
    }
}

void Wire::forward(std::size_t ring, std::uint16_t from, std::uint64_t carried,
                   std::int64_t time_ns) {
    const Carried& write = carried_[carried];
    WireWrite out;
    out.origin = from;
    out.interrupt = write.interrupt;
    out.bytes = write.bytes;
    out.offset = write.offset;
    out.time_ns = time_ns;
    out.tag = carried;
    submit_on(ring, out);
}

/// It has come round on one more ring; on the last, it is back as a whole.
void Wire::finish(const WireOutcome& outcome) {
    Carried& write = carried_[outcome.tag];
    RMEM_CHECK(write.rings_left != 0);
    if (--write.rings_left != 0) return;
    WireOutcome seen = outcome;
    seen.tag = write.tag;
    seen.node = seen.origin = write.origin;
    outcomes_.push_back(seen);
    free_.push_back(static_cast<std::uint32_t>(outcome.tag));
}

void Wire::report_sent(bool on) noexcept {
    for (WireModel& ring : rings_) ring.report_sent(on);
}

void Wire::refuse_faults() const {
    if (rings_.size() == 1) return;
    throw Error(Errc::bad_fault,
                "nodes and cables of a hierarchy of rings cannot fail; simulate a single ring");
}

void Wire::set_alive(std::uint32_t node, bool alive, std::int64_t time_ns) {
    refuse_faults();
    rings_.front().set_alive(node, alive, time_ns);
}

void Wire::set_cable(std::uint32_t ring, std::uint32_t from_node, bool up, std::int64_t time_ns) {
    refuse_faults();
    rings_.front().set_cable(ring, from_node, up, time_ns);
}

WireCounters Wire::counters(std::uint32_t node) const noexcept {
    return rings_[ring_of(node)].counters(place_of(node));
}

WireCounters Wire::totals() const noexcept {
    WireCounters sum;
    for (const WireModel& ring : rings_) sum += ring.totals();
    return sum;
}

std::int64_t Wire::bound_ns(std::uint32_t words) const noexcept {
    const TimingProfile& profile = rings_.front().profile();
    const std::int64_t leaf = rmem::bound_ns(profile, rings_.front().nodes(), words);
    if (rings_.size() == 1 || profile.promised_ns != 0 || leaf == 0) return leaf;
    // Its leaf to the bridge, the backbone, the other leaf: each from its first word to its last.
    return 2 * leaf + rmem::bound_ns(profile, topology_.rings, words) + 2 * topology_.bridge_ns;
}

}  // namespace rmem::sim
