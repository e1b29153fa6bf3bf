// SPDX-License-Identifier: Apache-2.0
// What the engine knows of the ring's members, and of the faults of its wire.

#include "rmem/base/clock.hpp"
#include "rmem/link/ring/engine.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/membership.hpp"

#include <algorithm>

namespace rmem {

namespace {

constexpr std::int64_t kTickNs = 100'000;       // act on what is known of members this often
constexpr std::int64_t kTotalsNs = 10'000'000;  // sum up the model's counters this often
constexpr std::int64_t kUnseenNs = 5'000'000;   // look at members ourselves when nobody else did
constexpr std::int64_t kTickWorkNs = 1'000;

}  // namespace

void RingEngine::look_at_members() noexcept {
    for (unsigned i = 0; i < kRanksPerLook; ++i) look_at_member();
}

void RingEngine::look_at_member() noexcept {
    const unsigned rank = next_rank_.add_shared() % rank_count();
    // relaxed is enough: what is seen a little later is seen next time
    const bool is_known = ring_.rank(rank).incarnation.load(std::memory_order_relaxed) != 0;
    seen_alive_[rank].set(is_known && ring_.is_alive(rank));
    members_seen_ns_.set(now_ns());
}

void RingEngine::tick(std::int64_t now) {
    next_tick_ns_ = now + kTickNs;
    work_ns_ += kTickWorkNs;
    if (now - members_seen_ns_.get() > kUnseenNs) {
        look_at_members();
        members_seen_ns_.set(now - kUnseenNs + kTickNs * 10);
    }
    for (unsigned r = 0; r < rank_count(); ++r) {
        const bool alive = seen_alive_[r].get();
        if (alive != rank_alive_[r] && (alive || is_over(r))) note_member(r, alive, now);
    }
    if (!model_) return;
    if (wire_faults_done_ < wire_faults_.size()) note_wire_faults(now);
    if (now < next_totals_ns_) return;
    next_totals_ns_ = now + kTotalsNs;
    const WireCounters totals = model_->totals();
    slot_.link.raise_to(LinkCounter::ring_switches, totals.switch_overs);
    slot_.link.raise_to(LinkCounter::aged_out, totals.aged_out);
}

/// Whether a rank that was seen dead is out of the ring: a card sends what it was given, even after
/// the process has ended. And the observation may be old: the rank may have a new incarnation,
/// whose first writes must not be lost with the former one.
bool RingEngine::is_over(unsigned rank) noexcept {
    // relaxed is enough: a rank that is dead after that look is of this incarnation
    const auto incarnation = ring_.rank(rank).incarnation.load(std::memory_order_relaxed);
    if (ring_.is_alive(rank)) {
        seen_alive_[rank].set(true);
        return false;
    }
    over_[rank] = incarnation;
    return flights_[rank].empty() && !has_news(rank);
}

void RingEngine::note_member(unsigned rank, bool alive, std::int64_t now) {
    rank_alive_[rank] = alive;
    find_node_of(rank);
    const unsigned node = rank_node_[rank];
    if (node == kNoNode || node == node_) return;
    const bool is_node_alive = alive || has_live_rank(node);
    if (is_node_alive == node_alive_[node]) return;
    set_node_alive(node, is_node_alive, is_node_alive ? 0 : now);  // at once: before what it wrote
    if (!is_node_alive) ring_.delivery().note_change();  // one that comes has done so itself
    // relaxed is enough: a process that has left has said so before it let go of its rank
    const auto state = ring_.rank(rank).state.load(std::memory_order_relaxed);
    if (!is_node_alive && state == static_cast<std::uint32_t>(RankState::joined)) {
        slot_.link.raise_to(LinkCounter::nodes_bypassed, ++bypassed_);
    }
}

void RingEngine::set_seen_alive(unsigned rank, bool alive) noexcept {
    seen_alive_[rank].set(alive);
    rank_alive_[rank] = alive;
}

void RingEngine::set_node_alive(unsigned node, bool alive, std::int64_t now) {
    node_alive_[node] = alive;
    if (!model_) return;
    // The model may not have come to the last change yet: before that, this one would be undone by
    // it.
    told_ns_[node] = std::max({now, model_->now_ns(), told_ns_[node]});
    model_->set_alive(node, alive, told_ns_[node]);
}

bool RingEngine::has_live_rank(unsigned node) const noexcept {
    for (unsigned r = 0; r < rank_node_.size(); ++r) {
        if (rank_node_[r] == node && rank_alive_[r]) return true;
    }
    return false;
}

std::int64_t RingEngine::fault_time(const WireFault& fault) const noexcept {
    constexpr std::int64_t kEver = kNever / 4;
    const std::int64_t made = std::clamp<std::int64_t>(ring_.header().made_ns, 0, kEver);
    return made + std::min(fault.at_ns, kEver);
}

void RingEngine::note_wire_faults(std::int64_t now) {
    for (; wire_faults_done_ < wire_faults_.size(); ++wire_faults_done_) {
        const WireFault& fault = wire_faults_[wire_faults_done_];
        if (fault_time(fault) > now) break;
        slot_.link.raise_to(LinkCounter::faults_injected, wire_faults_done_ + 1);
        if (fault.kind != WireFault::Kind::cable) continue;
        cable_cut_[fault.ring][fault.place] = !fault.up;
        if (!fault.up && cable_cut_[1 - fault.ring][fault.place]) {
            slot_.link.raise_to(LinkCounter::ring_breaks, ++breaks_);
        }
    }
}

/// Their writes need not come this way, so that they would be noticed by these. One that has died
/// since is found out as any other.
void RingEngine::meet_new_ranks() {
    for (unsigned r = 0; r < rank_count(); ++r) {
        const RankSlot& slot = ring_.rank(r);
        // relaxed is enough, throughout: a rank notes a change after it has joined
        const bool is_member = slot.state.load(std::memory_order_relaxed) ==
                               static_cast<std::uint32_t>(RankState::joined);
        const auto incarnation = slot.incarnation.load(std::memory_order_relaxed);
        const unsigned node = slot.node.load(std::memory_order_relaxed);  // enough: as above
        const bool is_known = rank_alive_[r] && rank_node_[r] != kNoNode;
        if (is_known || !is_member || incarnation == over_[r]) continue;
        set_seen_alive(r, true);
        if (node >= node_alive_.size()) continue;
        rank_node_[r] = node;
        if (!node_alive_[node]) set_node_alive(node, true, 0);
    }
}

/// The engine is idle when each rank in the ring delivers.
void RingEngine::note_idleness() noexcept {
    bool is_idle = !model_;
    for (unsigned r = 0; is_idle && r < rank_count(); ++r) {
        if (r == rank_ || is_delivered_[r].get()) continue;
        const RankSlot& slot = ring_.rank(r);
        // relaxed is enough, throughout: one that comes notes a change after it has said so
        const bool is_member = slot.state.load(std::memory_order_relaxed) ==
                               static_cast<std::uint32_t>(RankState::joined);
        const std::uint32_t deliverer =
            logs_[r].header().deliverer.load(std::memory_order_relaxed);  // enough: as above
        const bool is_over =
            over_[r] == slot.incarnation.load(std::memory_order_relaxed);  // enough: as above
        is_idle = !is_member || deliverer != 0 || is_over;
    }
    is_idle_.set(is_idle);
}

bool RingEngine::is_idle() const noexcept {
    // relaxed is enough: a look that comes a little later is soon enough
    return is_idle_.get() &&
           ring_.delivery().changes.load(std::memory_order_relaxed) == changes_seen_.get();
}

}  // namespace rmem
