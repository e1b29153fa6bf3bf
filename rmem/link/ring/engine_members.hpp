// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a node's engine knows of the ring's members: the node of each rank, and who is alive. A
/// node's keeper counts as a rank here.
///
/// Any thread may look; tick() acts on what was seen. A rank that was seen dead stays in the ring
/// until all that it wrote is read: a card sends what it was given, even after the process has
/// ended.
/// Invariants: the wire was told of each node what is_alive() says. The own node is alive.
/// Thread safety: look(): any thread.

#include "rmem/base/relaxed.hpp"
#include "rmem/link/ring/engine_node.hpp"
#include "rmem/link/ring/engine_wire.hpp"

#include <cstdint>
#include <vector>

namespace rmem {

class RMEM_API EngineMembers {
public:
    static constexpr unsigned kNoNode = kMaxNodes;
    static constexpr unsigned kRanksPerLook = 8;
    static constexpr std::int64_t kHeldLookNs = 100'000;  ///< whom a write waits for may have died

    EngineMembers(EngineNode& own, EngineWire& wire);

    /// kNoNode: unknown.
    unsigned node_of(unsigned rank) const noexcept { return ranks_[rank].node; }
    bool is_of_node(unsigned rank) const noexcept { return node_of(rank) == own_.node; }
    /// As the wire was told.
    bool is_alive(unsigned node) const noexcept { return node_alive_[node]; }
    const std::vector<bool>& node_alive() const noexcept { return node_alive_; }
    /// Whether a rank's incarnation was found dead.
    bool was_found_dead(unsigned rank, std::uint32_t incarnation) const noexcept {
        return ranks_[rank].dead == incarnation;
    }
    /// With write-me-last: whether a live node lacks a write of this one. The wire has carried it
    /// there, but a process that the host has put aside takes it later; one that sleeps is woken.
    [[nodiscard]] bool is_awaited(unsigned rank, const LogReader::Entry& entry) const noexcept {
        return (entry.record.flags & LogRecord::kMeLast) != 0 && anyone_lacks(rank, entry.next);
    }

    /// Looks at some ranks, in turn, or at all: a system call for each.
    void look() noexcept;
    void look_at_all() noexcept;
    /// Forgets the nodes, and takes over each rank, as it was seen; one that has written counts as
    /// seen.
    void forget_nodes();
    void take_over(unsigned rank, bool has_written);
    /// A rank that has written: its node comes into the ring if it was not there.
    void meet(unsigned rank);
    /// Those that have joined.
    void meet_new();

    bool is_tick_due(std::int64_t now) const noexcept { return now >= next_tick_ns_; }
    /// Acts on what was seen. `is_read(rank)`: nothing of a rank is on its way or unread.
    template <class IsRead>
    void tick(std::int64_t now, IsRead&& is_read) {
        begin_tick(now);
        for (unsigned r = 0; r < own_.seats.get(); ++r) {
            const bool alive = ranks_[r].seen_alive.get();
            if (alive != ranks_[r].alive && (alive || (find_dead(r) && is_read(r))))
                note(r, alive, now);
        }
    }

private:
    struct Rank {
        unsigned node = kNoNode;
        std::uint32_t dead = 0;  // its incarnation that was found dead
        bool alive = false;      // as far as we know
        Hint<bool> seen_alive;   // when a thread last looked
    };

    bool anyone_lacks(unsigned rank, std::uint64_t position) const noexcept;
    void wake_node(unsigned node) const noexcept;
    void begin_tick(std::int64_t now) noexcept;
    bool look_at_next() noexcept;
    [[nodiscard]] bool find_dead(unsigned rank) noexcept;
    [[nodiscard]] bool has_sent_all(unsigned rank) noexcept;
    void note(unsigned rank, bool alive, std::int64_t now);
    void find_node_of(unsigned rank) noexcept;
    void set_alive(unsigned rank, bool alive) noexcept;
    void set_node_alive(unsigned node, bool alive, std::int64_t now);
    bool has_live_rank(unsigned node) const noexcept;

    EngineNode& own_;
    EngineWire& wire_;
    std::vector<Rank> ranks_;
    std::vector<bool> node_alive_;
    std::int64_t next_tick_ns_ = 0;
    std::uint64_t bypassed_ = 0;
    Counter<unsigned> next_rank_;
    Hint<std::int64_t> seen_ns_;  // when a thread last looked at them
};

}  // namespace rmem
