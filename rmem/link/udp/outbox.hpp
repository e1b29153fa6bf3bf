// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the programs of a node wrote, into the node's stream.
///
/// The program that runs the engine hands over its writes itself; those of other programs of this
/// host are taken from their logs (rmem/ring/write_log.hpp), each log in its order. What injected
/// faults delay (rmem/wire/faults.hpp) waits here, and everything behind it, as in a card's FIFO.
///
/// When it leaves, a Coalescer decides (rmem/link/udp/coalescer.hpp).
///
/// Terms: a log's position is *consumed* when its writes are in the stream, *completed* when all
///   members have them. A client is a program of this host that writes by its log. Write-me-last:
///   the own bank gets a write when it is completed.
/// Invariant: what is put lies in the bank.
/// Thread safety: the engine's user. Progress: nothing waits: what finds no room in the stream
/// stays where it is.
/// Trust: a log's records are bounded by the bank; one that cannot be is counted, and skipped.

#include "rmem/link/udp/coalescer.hpp"
#include "rmem/link/udp/protocol/core.hpp"
#include "rmem/link/udp/tap.hpp"
#include "rmem/link/udp/word_stream.hpp"
#include "rmem/ring.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/write_log.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace rmem::udp {

class RMEM_API Outbox {
public:
    static constexpr std::size_t kMostDelayed = 4096;  ///< writes

    Outbox(Ring& ring, unsigned node, Core& core, Tap& tap);

    // ---- The program that runs the engine
    /// Whether a group of writes of `bytes` bytes in all can be taken now.
    [[nodiscard]] bool has_room(std::size_t bytes) const noexcept;
    /// A group of more than this may have to wait between its writes.
    std::size_t most_group_bytes() const noexcept;
    /// A write, stored in the own bank already (except for write-me-last). False: no room.
    [[nodiscard]] bool put(const LogRecord& record, const void* words, std::int64_t now);
    /// The same of one of any length, as far as there is room; returns how many words.
    [[nodiscard]] std::size_t put_some(const LogRecord& record, const std::byte* words);
    /// What was put leaves, now or, under load, with more.
    void commit(std::int64_t now);
    /// What was put leaves with what comes next, when the program waits, or after kLazyNs.
    void commit_on_wait() noexcept { coalescer_.on_commit_on_wait(); }
    const Coalescer& coalescer() const noexcept { return coalescer_; }
    /// The program waits: what coalesces leaves now.
    void send_coalesced(std::int64_t now) {
        if (coalescer_.on_wait()) send_open(now);
    }
    /// What the program has committed has left by then.
    void has_left(std::int64_t now) noexcept { coalescer_.on_left(now); }
    /// Others have written what the program may have waited for.
    void note_arrival() noexcept { coalescer_.on_arrival(); }
    /// The program waits until all have what it wrote: it leaves, and they are asked to say so.
    void send_and_ask(std::int64_t now) {
        coalescer_.on_sent();
        core_.ask_for_acks(now);
    }

    /// Under load that program's words come this way, many at a time.
    WordStream& own() noexcept { return own_; }
    const WordStream& own() const noexcept { return own_; }
    /// Moves them into the node's stream. False: some have found no room.
    [[nodiscard]] bool take_own(std::int64_t now);
    /// How many have been moved.
    std::uint64_t streamed() const noexcept { return streamed_; }
    /// When they leave at the latest; kNever: there are none.
    [[nodiscard]] std::int64_t own_due_ns() const noexcept;

    // ---- The others
    /// Finds the ranks of this host that write by a log: those that have joined in the node's
    /// present incarnation, except for that one.
    void find_clients(std::optional<unsigned> own_rank);
    /// Whether a program has opened as that rank in the node's present incarnation.
    bool has_opened(unsigned rank) const noexcept;
    const std::vector<unsigned>& clients() const noexcept { return clients_; }
    /// Puts what they have committed, and with `all` also what they have not; commits it.
    void take_logs(bool all, std::int64_t now);
    /// Whether one has committed something that is not consumed.
    [[nodiscard]] bool has_news() const noexcept;

    // ---- Later
    /// When something is to be done by on_time(): delayed writes, delayed acks.
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
    struct Delayed {
        LogRecord record;
        std::vector<std::byte> words;
        std::int64_t due_ns = 0;
    };
    struct OwnLater {  ///< write-me-last
        std::uint64_t sequence = 0;
        std::size_t offset = 0;
        std::vector<std::byte> words;
    };
    static constexpr std::uint64_t kLater = UINT64_MAX;  ///< not in the stream yet
    struct Consumed {
        std::uint64_t sequence = 0;
        unsigned rank = 0;
        std::uint64_t position = 0;
    };

    void send_open(std::int64_t now);
    std::uint64_t committed(unsigned rank) const noexcept;
    void show_consumed(unsigned rank, std::uint64_t position) noexcept;
    void show_completed(unsigned rank, std::uint64_t position) noexcept;
    void write(const LogRecord& record, const void* words, std::int64_t now);
    void show(const LogRecord& record, const void* words, std::int64_t now) noexcept;
    void show(std::span<const ShortWrite> writes, std::int64_t now) noexcept;
    [[nodiscard]] bool take_log(unsigned rank, std::uint64_t until, std::int64_t now);
    void move_log(unsigned rank, std::uint64_t until, std::int64_t now);
    void place_consumed() noexcept;
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
    const unsigned node_;
    std::vector<LogReader> logs_;  // of each rank
    std::vector<unsigned> clients_;
    std::vector<std::byte> words_;  ///< of one record
    WordStream own_;
    std::uint64_t streamed_ = 0;
    std::deque<Delayed> delayed_;
    std::deque<OwnLater> own_later_;
    std::deque<Consumed> consumed_;
    Coalescer coalescer_;
    std::uint64_t completed_ = 0;
};

}  // namespace rmem::udp
