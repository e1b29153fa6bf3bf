// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Who has which rank of a ring over several hosts: a word per rank in the bank, shown in the
/// segment's rank slots.
///
/// A rank's word is written by its node's engine as any other write, so all members learn of it in
/// the order of what the rank writes. The roster is the last of the bank
/// (RingConfig::roster_offset), and a joining node gets it with it. Of ranks on other hosts the own
/// segment's slot says `elsewhere` while they are there, and `lost` when their node is none of the
/// members any more; ranks of this host keep their slots themselves.
///
/// Thread safety: the engine's user. Trust: words are bounded; a rank of this host, another
/// node cannot take by writing.

#include "rmem/base/check.hpp"
#include "rmem/ring/ring.hpp"

#include <atomic>
#include <cstdint>
#include <functional>

namespace rmem::udp {

/// A rank's word.
struct RosterEntry {
    static constexpr std::uint32_t kMaxIncarnations = 1U << 23;

    bool joined = false;
    unsigned node = 0;
    std::uint32_t incarnation = 0;  ///< 0: the rank was never there

    static RosterEntry read(std::uint32_t word) noexcept {
        return {(word & 1) != 0, word >> 1 & 0xff, word >> 9};
    }
    std::uint32_t word() const noexcept {
        return (joined ? 1U : 0U) | node << 1 | incarnation % kMaxIncarnations << 9;
    }
};

class RMEM_API Roster {
public:
    Roster(Ring& ring, unsigned node) : ring_(ring), node_(node) {}

    std::size_t offset_of(unsigned rank) const noexcept {
        RMEM_CHECK(rank < ring_.config().ranks);
        return ring_.config().roster_offset() + rank * kWordBytes;
    }
    /// Of a guest none: other hosts know nothing of it.
    [[nodiscard]] RosterEntry entry(unsigned rank) const noexcept;
    /// A rank of this node's; its word goes to the others as any other write.
    void store(unsigned rank, const RosterEntry& entry) noexcept;
    /// Whether a live process of this host has the rank.
    [[nodiscard]] bool is_here(unsigned rank) const noexcept;

    /// Another node has written `words` words there; those of the roster count.
    void applied(std::size_t offset, std::size_t words) noexcept;
    /// The bank is a new one: all of it counts. Ranks of nodes for which that is false are lost.
    void read_all(const std::function<bool(unsigned node)>& is_there) noexcept;
    /// Ranks of nodes for which that is false are lost.
    void lose_unless(const std::function<bool(unsigned node)>& is_there) noexcept;

private:
    std::atomic<std::uint32_t>& word(unsigned rank) const noexcept;
    void show(unsigned rank, RankState as) noexcept;

    Ring& ring_;
    unsigned node_;
};

}  // namespace rmem::udp
