// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a node's engine reads of each rank's log (rmem/ring/write_log.hpp), which logs are its, and
/// the writes under way: taken up, and neither applied here nor lost.
///
/// A log is left alone while its rank delivers by itself (rmem/link/ring/delivery.hpp), and what is
/// due of it while its rank has claimed it. What is read is bounded before it is used; a log that
/// holds something else is passed over, and counted.
/// Invariants: each log is read in its order: a record that is taken up follows the one before.
///   The count of flights is of all that are there.
/// Thread safety: is_idle(), written_in_all() and lacks_writes(): any thread.

#include "rmem/base/check.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/base/time.hpp"
#include "rmem/link/ring/engine_members.hpp"
#include "rmem/link/ring/engine_node.hpp"
#include "rmem/link/ring/engine_wire.hpp"
#include "rmem/ring/write_log.hpp"
#include "rmem/wire/queue.hpp"

#include <cstdint>
#include <vector>

namespace rmem {

/// A write under way.
struct Flight {
    LogReader::Entry entry;
    std::uint64_t before = 0;      ///< position after the record before it
    std::int64_t unseen_ns = 0;    ///< its writer published it that long after its time
    std::int64_t due_ns = kNever;  ///< it has come here, at that time; 0: long ago
    std::int64_t stored_ns = 0;    ///< it was put into the bank then; 0: it was not yet
    bool gone = false;             ///< lost, but something before it is under way
};

class RMEM_API EngineLogs {
public:
    using Flights = detail::NumberedRing<Flight>;
    /// Those of ranks that do not deliver themselves, or all, when a node is taken in.
    enum class Which { undelivered, all };

    EngineLogs(EngineNode& own, const EngineWire& wire, EngineMembers& members);

    LogReader& operator[](unsigned rank) noexcept { return logs_[rank]; }
    const LogReader& operator[](unsigned rank) const noexcept { return logs_[rank]; }

    // ---- Reading
    /// Goes to what the bank lacks. Returns the time of the oldest write in it, now() at most.
    std::int64_t restart();
    /// Whether a log was reused before it was read: another process of the node has applied it.
    bool was_lapped() const noexcept { return lapped_; }
    void find_news(Which which);
    /// The ranks that had unread records then.
    std::vector<unsigned>& news() noexcept { return news_; }
    bool has_any_news();
    /// Whether a rank's log has records for this engine.
    [[nodiscard]] bool has_news(unsigned rank);
    /// The next record of a rank, checked. False when there is none that can be used now.
    [[nodiscard]] bool peek(unsigned rank, LogReader::Entry& entry);
    /// Looks up the first record of each rank with news. Whether there is one.
    [[nodiscard]] bool peek_news();
    /// Hands over all, in the order of their times, since ranks of one node share its FIFO;
    /// `take(rank, entry)` takes it up.
    template <class Take>
    void feed(Take&& take);
    /// The engine has it in its hands from now on; the number of the flight.
    std::uint64_t take_up(unsigned rank, const LogReader::Entry& entry);
    [[nodiscard]] bool is_in_bank(const LogRecord& record) const noexcept;

    /// Position after the newest record taken up, and after the last word of users among them.
    std::uint64_t fed(unsigned rank) const noexcept { return ranks_[rank].fed; }
    std::uint64_t users_end(unsigned rank) const noexcept { return ranks_[rank].users_end; }

    // ---- Under way
    bool has_flights() const noexcept { return in_flight_ != 0; }
    /// Of a rank, in the log's order.
    Flights& flights(unsigned rank) noexcept { return ranks_[rank].flights; }
    const Flights& flights(unsigned rank) const noexcept { return ranks_[rank].flights; }
    /// The first is over.
    void pop_flight(unsigned rank) noexcept {
        RMEM_CHECK_IF(false, in_flight_ != 0 && !flights(rank).empty());
        flights(rank).pop_front();
        --in_flight_;
    }
    /// Those before `until` never come: later ones have come.
    void drop_before(unsigned rank, std::uint64_t until) noexcept;

    // ---- Whose they are
    /// Whether a rank's writes are left to its process, which brings them as soon as they are due.
    bool is_claimed(unsigned rank) const noexcept;
    /// The engine is idle when each rank in the ring delivers.
    void note_idleness() noexcept;
    bool is_idle() const noexcept;
    std::uint64_t written_in_all() const noexcept;
    bool lacks_writes(bool own) const noexcept;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    struct Rank {
        Flights flights;
        LogReader::Entry next;  // if it has news
        std::uint64_t fed = 0;
        std::uint64_t users_end = 0;
    };

    [[nodiscard]] std::int64_t begin(unsigned rank);
    /// Keepers write nothing.
    void forget_deliverer(unsigned rank) noexcept {
        is_delivered_[rank].set(own_.config.is_keeper(rank));
    }
    void pass(unsigned rank, std::uint64_t position) noexcept {
        ranks_[rank].fed = ranks_[rank].users_end = position;
    }
    void pass_quiet(unsigned rank) noexcept;
    std::uint64_t written(unsigned rank) const noexcept;
    void add_flight(unsigned rank, const Flight& flight) {
        flights(rank).push_back(flight);
        ++in_flight_;
    }

    EngineNode& own_;
    const EngineWire& wire_;
    EngineMembers& members_;
    std::vector<LogReader> logs_;  // of each rank: each run looks at all, so they lie together
    std::vector<Rank> ranks_;
    std::uint64_t in_flight_ = 0;
    std::vector<Hint<bool>> is_delivered_;  // of each rank: at the last look at all
    std::vector<unsigned> news_;
    bool lapped_ = false;
    Which which_ = Which::undelivered;
    Hint<std::uint32_t> changes_seen_;  // DeliveryBoard::changes at the last look at all logs
    Hint<bool> is_idle_;
};

template <class Take>
void EngineLogs::feed(Take&& take) {
    while (!news_.empty()) {
        auto first = news_.begin();
        const auto time_of = [this](unsigned r) { return ranks_[r].next.record.written_ns; };
        for (auto it = first + 1; it != news_.end(); ++it) {
            if (time_of(*it) < time_of(*first)) first = it;
        }
        Rank& rank = ranks_[*first];
        take(*first, rank.next);
        if (!logs_[*first].refresh() || !peek(*first, rank.next)) news_.erase(first);
    }
}

}  // namespace rmem
