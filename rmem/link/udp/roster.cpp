// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/roster.hpp"

#include <algorithm>

namespace rmem::udp {

namespace {

RankState state_of(const RankSlot& slot) noexcept {
    // relaxed is enough: the engine alone changes these states, and the ranks' own the byte lock
    // decides
    return static_cast<RankState>(slot.state.load(std::memory_order_relaxed));
}

}  // namespace

std::atomic<std::uint32_t>& Roster::word(unsigned rank) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(ring_.bank(node_) + offset_of(rank));
}

RosterEntry Roster::entry(unsigned rank) const noexcept {
    if (rank >= ring_.config().ranks) return {};
    // relaxed is enough: the engine stored it itself
    return RosterEntry::read(word(rank).load(std::memory_order_relaxed));
}

void Roster::store(unsigned rank, const RosterEntry& entry) noexcept {
    // (3) - this release-store synchronizes-with the acquire-load rmem/link/bank_writer.hpp (1)
    word(rank).store(entry.word(), std::memory_order_release);
}

bool Roster::is_here(unsigned rank) const noexcept {
    return state_of(ring_.rank(rank)) == RankState::joined && ring_.is_alive(rank);
}

void Roster::show(unsigned rank, RankState as) noexcept {
    const RosterEntry entry = this->entry(rank);
    RankSlot& slot = ring_.rank(rank);
    slot.node.store(entry.node, std::memory_order_relaxed);                // enough: (1)
    slot.incarnation.store(entry.incarnation, std::memory_order_relaxed);  // enough: (1)
    // (1) - this release-store synchronizes-with the acquire-loads rmem/ring/ring.cpp (6),
    // rmem/ring/waiting/awaiting.cpp (1) and rmem/link/udp/memory.cpp (2)
    slot.state.store(static_cast<std::uint32_t>(as), std::memory_order_release);
}

void Roster::applied(std::size_t offset, std::size_t words) noexcept {
    const std::size_t begin = ring_.config().roster_offset();
    const std::size_t end = offset + words * kWordBytes;
    for (std::size_t at = std::max(offset, begin); at < end; at += kWordBytes) {
        const auto rank = static_cast<unsigned>((at - begin) / kWordBytes);
        if (rank >= ring_.config().ranks || is_here(rank)) continue;
        const RosterEntry entry = this->entry(rank);
        if (entry.node == node_) continue;  // a former program of this node
        show(rank, entry.joined ? RankState::elsewhere : RankState::left);
    }
}

void Roster::read_all(const std::function<bool(unsigned)>& is_there) noexcept {
    for (unsigned rank = 0; rank < ring_.config().ranks; ++rank) {
        const RosterEntry entry = this->entry(rank);
        if (is_here(rank) || entry.incarnation == 0) continue;
        const bool is_reached = entry.node != node_ && is_there(entry.node);
        show(rank, !entry.joined ? RankState::left
                   : is_reached  ? RankState::elsewhere
                                 : RankState::lost);
    }
}

void Roster::lose_unless(const std::function<bool(unsigned)>& is_there) noexcept {
    for (unsigned rank = 0; rank < ring_.config().ranks; ++rank) {
        if (state_of(ring_.rank(rank)) != RankState::elsewhere) continue;
        // relaxed is enough: as in state_of()
        if (is_there(ring_.rank(rank).node.load(std::memory_order_relaxed))) continue;
        // (2) - this release-store synchronizes-with the acquire-load rmem/link/udp/memory.cpp (2)
        ring_.rank(rank).state.store(static_cast<std::uint32_t>(RankState::lost),
                                     std::memory_order_release);
    }
}

}  // namespace rmem::udp
