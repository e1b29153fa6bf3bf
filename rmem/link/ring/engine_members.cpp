// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_members.hpp"

#include "rmem/base/check.hpp"
#include "rmem/ring/applied.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/unsent.hpp"
#include "rmem/ring/waiting/sleeping_engines.hpp"

#include <algorithm>

namespace rmem {

namespace {

constexpr std::int64_t kTickNs = 100'000;      // act on what is known of members this often
constexpr std::int64_t kUnseenNs = 5'000'000;  // look at members ourselves when nobody else did
constexpr std::int64_t kTickWorkNs = 1'000;

}  // namespace

EngineMembers::EngineMembers(EngineNode& own, EngineWire& wire)
    : own_(own), wire_(wire), ranks_(own.config.seats()) {}

void EngineMembers::look_at_all() noexcept {
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        // relaxed is enough: as in find_dead()
        const auto incarnation = own_.ring.rank(r).incarnation.load(std::memory_order_relaxed);
        // One that has never been there is not asked after: it takes a system call for each.
        set_alive(r, incarnation != 0 && own_.ring.is_alive(r));
        if (ranks_[r].alive) continue;
        ranks_[r].dead = incarnation;
        if (!has_sent_all(r)) set_alive(r, true);  // until a tick finds it dead
    }
}

bool EngineMembers::anyone_lacks(unsigned rank, std::uint64_t position) const noexcept {
    for (unsigned n = 0; n < node_alive_.size(); ++n) {
        if (n == own_.node || !node_alive_[n] || applied_of(own_.ring, n, rank) >= position)
            continue;
        wake_node(n);
        return true;
    }
    return false;
}

/// Its thread may rest or sleep, since nobody there looks for the write.
void EngineMembers::wake_node(unsigned node) const noexcept {
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        if (node_of(r) == node) SleepingEngines(own_.ring).wake(r);
    }
}

void EngineMembers::look() noexcept {
    unsigned asked = 0;
    for (unsigned i = 0; i < own_.seats.get() && asked < kRanksPerLook; ++i)
        asked += look_at_next() ? 1U : 0U;
    seen_ns_.set(now_ns());
}

/// False: it was never there, so nobody was asked.
bool EngineMembers::look_at_next() noexcept {
    const unsigned rank = next_rank_.add_shared() % own_.seats.get();
    // relaxed is enough: what is seen a little later is seen next time
    const bool is_known = own_.ring.rank(rank).incarnation.load(std::memory_order_relaxed) != 0;
    ranks_[rank].seen_alive.set(is_known && own_.ring.is_alive(rank));
    return is_known;
}

void EngineMembers::begin_tick(std::int64_t now) noexcept {
    RMEM_CHECK_IF(false, is_alive(own_.node));
    next_tick_ns_ = now + kTickNs;
    own_.time.add_work(kTickWorkNs);
    if (now - seen_ns_.get() <= kUnseenNs) return;
    look();
    seen_ns_.set(now - kUnseenNs + kTickNs * 10);
}

/// Whether a rank that was seen dead is: the observation may be old, and the rank have a new
/// incarnation, whose first writes must not be lost with the former one.
bool EngineMembers::find_dead(unsigned rank) noexcept {
    // relaxed is enough: a rank that is dead after that look is of this incarnation
    const auto incarnation = own_.ring.rank(rank).incarnation.load(std::memory_order_relaxed);
    if (own_.ring.is_alive(rank)) {
        ranks_[rank].seen_alive.set(true);
        return false;
    }
    ranks_[rank].dead = incarnation;
    return true;
}

/// What a dead rank of this node has stored into the bank is sent before anybody else takes that as
/// written. False: some is not.
bool EngineMembers::has_sent_all(unsigned rank) noexcept {
    find_node_of(rank);
    return own_.config.is_keeper(rank) || !is_of_node(rank) || send_unsent_of_dead(own_.ring, rank);
}

void EngineMembers::note(unsigned rank, bool alive, std::int64_t now) {
    if (!alive && !has_sent_all(rank)) return;  // the next time
    ranks_[rank].alive = alive;
    find_node_of(rank);
    const unsigned node = node_of(rank);
    if (node == kNoNode || node == own_.node) return;
    const bool is_node_alive = alive || has_live_rank(node);
    if (is_node_alive == node_alive_[node]) return;
    set_node_alive(node, is_node_alive, is_node_alive ? 0 : now);  // at once: before what it wrote
    if (!is_node_alive) own_.ring.delivery().note_change();  // one that comes has done so itself
    // relaxed is enough: a process that has left has said so before it let go of its rank
    const auto state = own_.ring.rank(rank).state.load(std::memory_order_relaxed);
    if (!is_node_alive && state == static_cast<std::uint32_t>(RankState::joined)) {
        own_.slot.link.raise_to(LinkCounter::nodes_bypassed, ++bypassed_);
    }
}

void EngineMembers::find_node_of(unsigned rank) noexcept {
    // relaxed is enough: a rank's node is stored before its records are published
    const std::uint32_t node = own_.ring.rank(rank).node.load(std::memory_order_relaxed);
    const bool joined =
        own_.ring.rank(rank).incarnation.load(std::memory_order_relaxed) != 0;  // enough: likewise
    ranks_[rank].node = joined && node < own_.config.nodes ? node : kNoNode;
}

void EngineMembers::set_alive(unsigned rank, bool alive) noexcept {
    ranks_[rank].seen_alive.set(alive);
    ranks_[rank].alive = alive;
}

void EngineMembers::set_node_alive(unsigned node, bool alive, std::int64_t now) {
    node_alive_[node] = alive;
    wire_.set_alive(node, alive, now);
}

bool EngineMembers::has_live_rank(unsigned node) const noexcept {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [node](const Rank& rank) { return rank.node == node && rank.alive; });
}

void EngineMembers::forget_nodes() {
    node_alive_.assign(own_.config.nodes, false);
    node_alive_[own_.node] = true;
}

void EngineMembers::take_over(unsigned rank, bool has_written) {
    if (has_written) set_alive(rank, true);  // as in meet()
    find_node_of(rank);
    if (ranks_[rank].alive && node_of(rank) != kNoNode) node_alive_[node_of(rank)] = true;
}

/// One that has died since is found out as any other: what it wrote is sent.
void EngineMembers::meet(unsigned rank) {
    find_node_of(rank);
    const unsigned node = node_of(rank);
    if (node == kNoNode || node_alive_[node]) return;
    set_alive(rank, true);
    set_node_alive(node, true, 0);  // at once: before what it wrote
}

/// Their writes need not come this way, so that they would be noticed by these. One that has died
/// since is found out as any other.
void EngineMembers::meet_new() {
    for (unsigned r = 0; r < own_.seats.get(); ++r) {
        const RankSlot& slot = own_.ring.rank(r);
        // relaxed is enough, throughout: a rank notes a change after it has joined
        const bool is_member = slot.state.load(std::memory_order_relaxed) ==
                               static_cast<std::uint32_t>(RankState::joined);
        const auto incarnation = slot.incarnation.load(std::memory_order_relaxed);
        const unsigned node = slot.node.load(std::memory_order_relaxed);  // enough: as above
        const bool is_known = ranks_[r].alive && node_of(r) != kNoNode;
        if (is_known || !is_member || was_found_dead(r, incarnation)) continue;
        set_alive(r, true);
        if (node >= node_alive_.size()) continue;
        ranks_[r].node = node;
        if (!node_alive_[node]) set_node_alive(node, true, 0);
    }
}

}  // namespace rmem
