// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the programs of a node wrote, into the node's stream.
///
/// Every program writes into its rank's log (rmem/ring/write_log.hpp), and says how far it has
/// committed that; the engine takes the logs, each in its order, and what is taken leaves. When a
/// program commits, rmem/link/udp/pacing.hpp decides. What injected faults delay
/// (rmem/wire/faults.hpp) waits here, and everything behind it, as in a card's FIFO.
///
/// Terms: a log's position is *consumed* when its writes are in the stream, *completed* when all
///   members have them. The own log is that of the program that runs the engine; a client is
///   another program of this host. Write-me-last: the own bank gets a write when it is completed.
/// Invariants: what is put lies in the bank. A word of the roster is a member's.
/// Thread safety: the engine's user. Progress: nothing waits: what finds no room in the stream
/// stays where it is.
/// Trust: a log's records are bounded by the bank; one that cannot be is counted, and skipped.

#include "rmem/link/udp/protocol/core.hpp"
#include "rmem/link/udp/roster.hpp"
#include "rmem/link/udp/tap.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/write_log.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace rmem::udp {

class RMEM_API Outbox {
public:
    static constexpr std::size_t kMaxDelayed = 4096;  ///< writes

    /// What is taken of the logs: what programs have committed; the same without the own log, since
    /// its program is about to have it taken; or all that lies in them.
    enum class Take : std::uint8_t { committed, of_clients, all };

    /// `own_rank`: of the program that runs the engine.
    Outbox(Ring& ring, Core& core, Tap& tap, Roster& roster, std::optional<unsigned> own_rank);

    /// A write, stored in the own bank already (except for write-me-last). False: no room.
    [[nodiscard]] bool put(const LogRecord& record, const void* words, std::int64_t now);
    /// Whether a group of writes of `bytes` bytes in all can be taken now; a large one, of which
    /// an eighth of the window can.
    [[nodiscard]] bool has_room(std::size_t bytes) const noexcept;
    /// What was put leaves.
    void commit(std::int64_t now) { core_.commit(now); }

    // ---- Logs
    /// Programs have come or gone since find_programs().
    [[nodiscard]] bool have_programs_changed() const noexcept {
        // relaxed is enough: a program that is not seen now rings the bell, or is seen later
        return board_.membership_changes.load(std::memory_order_relaxed) != changes_seen_;
    }
    /// Finds the programs of this host whose logs count: those that have opened in the node's
    /// present incarnation.
    void find_programs();
    /// The same, and the roster's words of this host's ranks follow their slots: of one that has
    /// come, before what it writes; of one that has gone, after `take_all`. What finds no room is
    /// written the next time.
    void keep_roster(const std::function<void()>& take_all, std::int64_t now);
    /// Whether other programs write than the one that runs the engine.
    bool has_clients() const noexcept { return has_clients_; }
    /// Puts what the logs have into the stream, as far as there is room, or until that number of
    /// datagrams is full; then call it again. False: there was nothing. What is put leaves with
    /// commit().
    [[nodiscard]] bool take(Take what, std::size_t datagrams, std::int64_t now);
    /// Whether a program has committed something for which there is room and that is not consumed.
    [[nodiscard]] bool has_news(Take what) const noexcept;
    /// When the oldest write was made that is in the own log, or in a datagram that has not left;
    /// kNever if there is none.
    [[nodiscard]] std::int64_t open_since_ns() noexcept;
    /// Whether all of the own log is committed.
    [[nodiscard]] bool is_committed() noexcept;
    /// Whether the own log has something committed that is not consumed.
    [[nodiscard]] bool is_behind() const noexcept {
        return own_rank_ && committed(*own_rank_) > logs_[*own_rank_].position();
    }
    /// Whether no log holds anything that is not consumed.
    [[nodiscard]] bool has_all() noexcept;

    // ---- Later
    /// When something is to be done by on_time(): delayed writes.
    std::int64_t due_ns() const noexcept;
    void on_time(std::int64_t now);
    /// The stream is acknowledged up to where it is: completes the positions before that. True if
    /// the own bank changed.
    [[nodiscard]] bool complete() noexcept;
    /// Everything put has left and all have it.
    [[nodiscard]] bool is_completed() const noexcept;
    /// The stream is a new incarnation's: nothing of the former is awaited any more, and logs go on
    /// from their ends.
    void begin_incarnation();

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    struct Delayed {
        LogRecord record;
        std::vector<std::byte> words;
        std::int64_t due_ns = 0;
    };
    struct OwnLater {  ///< write-me-last
        std::uint64_t sequence = 0;
        LogRecord record;
        std::vector<std::byte> words;
    };
    static constexpr std::uint64_t kLater = UINT64_MAX;  ///< not in the stream yet
    struct Consumed {
        std::uint64_t sequence = 0;
        unsigned rank = 0;
        std::uint64_t position = 0;
    };

    /// Whether a program has opened as that rank in the node's present incarnation.
    bool has_opened(unsigned rank) const noexcept;
    void look_after_guests(const std::function<void()>& take_all);
    void write_roster(unsigned rank, const RosterEntry& entry, std::int64_t now);
    std::uint64_t committed(unsigned rank) const noexcept;
    void show_consumed(unsigned rank, std::uint64_t position) noexcept;
    void show_completed(unsigned rank, std::uint64_t position) noexcept;
    [[nodiscard]] bool write(const LogRecord& record, const void* words, std::int64_t now);
    void show(const LogRecord& record, const void* words, std::int64_t now) noexcept;
    bool takes(Take what, unsigned rank) const noexcept {
        return what != Take::of_clients || rank != own_rank_;
    }
    [[nodiscard]] bool take_log(unsigned rank, std::uint64_t until, std::size_t datagrams,
                                std::int64_t now);
    void place_consumed() noexcept;
    [[nodiscard]] bool put_part(const LogRecord& record, std::int64_t now);
    bool is_possible(const LogRecord& record) const noexcept;
    void pass_over(unsigned rank, std::uint64_t position) noexcept;

    Ring& ring_;
    NodeBoard& board_;
    NodeSlot& slot_;
    const Bank bank_;
    const ApplierUse applier_;
    const std::size_t bank_bytes_;
    Core& core_;
    Tap& tap_;
    Roster& roster_;
    const unsigned node_;
    const std::optional<unsigned> own_rank_;
    std::vector<LogReader> logs_;     // of each rank
    std::uint32_t words_done_ = 0;    ///< of the own log's oldest record
    std::vector<unsigned> programs_;  ///< whose logs count
    bool has_clients_ = false;
    std::uint32_t changes_seen_ = 0;
    std::deque<Delayed> delayed_;
    std::deque<OwnLater> own_later_;
    std::deque<Consumed> consumed_;
    std::uint64_t completed_ = 0;
};

}  // namespace rmem::udp
