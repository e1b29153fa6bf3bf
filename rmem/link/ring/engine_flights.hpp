// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The writes under way: seen in a log, and neither applied here nor lost.
///
/// Of each rank they are in the log's order, and have numbers that count up.
/// Invariants: the count is of all that are there.

#include "rmem/base/check.hpp"
#include "rmem/base/time.hpp"
#include "rmem/link/ring/engine_members.hpp"
#include "rmem/link/ring/engine_node.hpp"
#include "rmem/ring/write_log.hpp"
#include "rmem/wire/queue.hpp"

#include <cstdint>
#include <vector>

namespace rmem {

struct Flight {
    LogReader::Entry entry;
    std::uint64_t before = 0;      ///< position after the record before it
    std::int64_t unseen_ns = 0;    ///< its writer published it that long after its time
    std::int64_t due_ns = kNever;  ///< it has come here, at that time; 0: long ago
    std::int64_t stored_ns = 0;    ///< it was put into the bank then; 0: it was not yet
    bool gone = false;             ///< lost, but something before it is under way
};

class EngineFlights {
public:
    using Queue = detail::NumberedRing<Flight>;

    EngineFlights(EngineNode& own, const EngineMembers& members) : own_(own), members_(members) {}

    void restart() {
        queues_.assign(own_.ranks, Queue());
        count_ = 0;
    }
    bool any() const noexcept { return count_ != 0; }
    Queue& operator[](unsigned rank) noexcept { return queues_[rank]; }
    const Queue& operator[](unsigned rank) const noexcept { return queues_[rank]; }

    Flight& add(unsigned rank, const Flight& flight) {
        queues_[rank].push_back(flight);
        ++count_;
        return queues_[rank].back();
    }
    /// The first of a rank is over.
    void pop(unsigned rank) noexcept {
        RMEM_CHECK_IF(false, count_ != 0 && !queues_[rank].empty());
        queues_[rank].pop_front();
        --count_;
    }
    /// Those before `until` never come: later ones have come.
    void drop_before(unsigned rank, std::uint64_t until) noexcept {
        for (const Queue& queue = queues_[rank]; queue.first() < until; pop(rank)) {
            const LogReader::Entry& entry = queue.front().entry;
            if (!members_.is_of_node(rank) && !own_.has_applied(rank, entry))
                own_.slot.link.add(LinkCounter::lost_on_wire);
            own_.set_applied(rank, entry.next);
        }
    }

private:
    EngineNode& own_;
    const EngineMembers& members_;
    std::vector<Queue> queues_;  // of each rank
    std::uint64_t count_ = 0;
};

}  // namespace rmem
