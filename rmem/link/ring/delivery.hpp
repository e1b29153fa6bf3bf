// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Delivery by the writer, on a wire that takes no time: a rank stores each of its writes into all
/// banks itself, and no engine has to run for it. Its log has the writes all the same, for
/// recorders and for those who finish what it leaves.
///
/// States of a rank's log, in LogHeader::deliverer
///   0                the engine of each node applies what it finds in the log
///   an incarnation   that incarnation delivers: engines leave the log alone while it is alive.
///                    After its death they apply what lies above `everywhere`: one write at most.
///                    On a wire that takes time a rank claims its log so for a write alone, until
///                    it is due (docs/design/ring-link.md)
/// A rank delivers while it may (the profile is instant, it has no faults of its own) and no live
/// rank wants each write to pass its engine (RankSlot::wants_each_write: a rank that joins, checks
/// for races, has a fault in its wire, or is to be told of violations). It begins when all live
/// nodes have applied what it wrote, so nothing of it is in an engine's hands then.
///
///     writer, each write                       a rank that joins
///     append to the log                        wants_each_write = 1; ++changes
///     light_fence();                           heavy_fence();
///     if (changes) look around                 copy a bank, apply all logs up to their heads
///     store into all banks, or stop            wants_each_write = 0; ++changes
///     everywhere = head
///
/// Of the two the writer sees the change, and leaves this write to the engines, or the one who
/// joins finds the write in the log. The writer stores nothing into the bank of the one who joins
/// before that one has finished.
///
/// Counts of other nodes (writes_applied, bytes_applied) follow in groups of kCounted writes, of
/// which one is timed for `propagation`; with a bound each is.
///
/// Thread safety: one thread. Progress: wait-free, but for the wakes.
/// Invariants: `everywhere` is never above the head, and below it by the write at hand.

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/ring/bank.hpp"
#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"
#include "rmem/ring/write_log.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rmem {

class Membership;

class RMEM_API RingDelivery {
public:
    static constexpr unsigned kCounted = 128;

    /// `may`: the rank's writes have no faults. It does not begin yet.
    RingDelivery(Membership& member, InterruptBoard& interrupts, bool may);
    RingDelivery(const RingDelivery&) = delete;
    RingDelivery& operator=(const RingDelivery&) = delete;

    bool is_on() const noexcept { return on_; }
    /// Whether it can begin, as soon as all live nodes have applied all that is in the log.
    [[nodiscard]] bool may_begin() {
        if (on_ || !may_) return false;
        if (has_changed()) look_around();
        return !is_each_wanted_;
    }
    void begin(std::uint64_t head);

    /// For the record of the next write: when it is made, or with kUntimed, some time before.
    void time(LogRecord& record) noexcept;
    /// The write that was appended, by a rank that delivers, under its Applying. False: the engines
    /// have to apply it.
    [[nodiscard]] bool deliver(std::uint64_t head, const LogRecord& record, const void* words);
    // ---- On a wire that takes time
    /// Whether some other program does not run its engine.
    [[nodiscard]] bool is_needed() {
        if (has_changed()) look_around();
        return is_needed_;
    }
    /// Takes the log for as long as the writer waits until its writes are due, and brings them to
    /// the others: the engines leave it alone. Before the append, or for what is under way. False:
    /// some rank wants each write.
    [[nodiscard]] bool claim();
    /// Where the log ended when it was claimed.
    std::uint64_t claimed_from() const noexcept { return claimed_from_; }
    /// After the append: false, the engines have to do it.
    [[nodiscard]] bool keeps_claim();
    void release_claim() noexcept;
    /// Whether all other nodes that are alive have the own writes up to that position.
    [[nodiscard]] bool is_everywhere(std::uint64_t position) const noexcept;

    /// Brings the counts of the other nodes up to date.
    void settle() noexcept;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    bool has_changed() const noexcept {
        // relaxed is enough: look_around() orders what it reads
        return board_.changes.load(std::memory_order_relaxed) != changes_seen_;
    }
    void look_around();
    void find_banks();
    void stop() noexcept;
    void store(const LogRecord& record, const void* words) noexcept;
    void publish(std::uint64_t head) noexcept;
    void note(const LogRecord& record) noexcept;
    [[gnu::noinline]] void measure(const LogRecord& record) noexcept;
    [[gnu::noinline]] void tell(const LogRecord& record) noexcept;

    Ring& ring_;
    const unsigned node_, rank_;
    const std::uint32_t incarnation_;
    const bool takes_time_;  ///< the wire
    const bool has_fences_;
    const bool may_;
    DeliveryBoard& board_;
    LogHeader& log_;
    const Bank own_bank_;
    InterruptBoard& interrupts_;
    const WordSleepers sleepers_;

    bool on_ = false;
    bool is_each_wanted_ = true;
    bool is_needed_ = false;  ///< by a program that does not run its engine
    std::uint64_t claimed_from_ = 0;
    bool is_timed_ = true;         ///< each write, for recorders or the bound
    bool is_measured_ = false;     ///< this write
    std::uint32_t changes_seen_;   ///< when it last looked around
    std::vector<Bank> banks_;      ///< of the other nodes that were taken into the ring
    std::vector<unsigned> nodes_;  ///< whose these are
    std::int64_t last_ns_ = 0;     ///< a time that was
    unsigned counted_ = 0;         ///< writes that the other nodes' counts lack
    std::uint64_t counted_bytes_ = 0;
};

// ---- Inline definitions

inline void RingDelivery::time(LogRecord& record) noexcept {
    is_measured_ = counted_ + 1 == kCounted || ring_.config().bound_ns != 0;
    // What has changed may be that a recorder has come.
    const bool is_now = is_timed_ || is_measured_ || !on_ || has_changed();
    if (is_now) last_ns_ = now_ns();
    record.written_ns = last_ns_;
    if (!is_now) record.flags |= LogRecord::kUntimed;
}

inline bool RingDelivery::deliver(std::uint64_t head, const LogRecord& record, const void* words) {
    RMEM_MARK("ring.appended");
    light_fence();
    if (has_changed()) [[unlikely]] {
        look_around();
        if (!on_) return false;
    }
    RMEM_MARK("ring.delivers");
    store(record, words);
    publish(head);
    note(record);
    return true;
}

inline void RingDelivery::store(const LogRecord& record, const void* words) noexcept {
    // relaxed is enough: as in Applying
    const bool any_twin = board_.twins.load(std::memory_order_relaxed) != 0;
    for (const Bank& bank : banks_) {
        bank.store(record, words, any_twin);
        RMEM_MARK("ring.stored");
    }
    if ((record.flags & LogRecord::kMeLast) != 0) own_bank_.store(record, words, any_twin);
}

inline void RingDelivery::publish(std::uint64_t head) noexcept {
    // relaxed is enough, here: this thread has stored it
    RMEM_CHECK_IF(false, log_.everywhere.load(std::memory_order_relaxed) < head);
    // (2) - this release-store synchronizes-with the acquire-loads rmem/ring/applied.hpp (3) and
    // engine_logs.cpp (4)
    log_.everywhere.store(head, std::memory_order_release);
    RMEM_MARK("ring.published");
}

/// Counts the write, and wakes those that want to know of it.
inline void RingDelivery::note(const LogRecord& record) noexcept {
    counted_bytes_ += record.words * kWordBytes;
    ++counted_;
    if (is_measured_) [[unlikely]]
        measure(record);
    const bool is_wanted = record.offset < ring_.config().user_bytes
                               ? sleepers_.is_wanted(record.offset, record.words * kWordBytes)
                               : record.offset >= ring_.config().registers_offset();
    if (is_wanted) [[unlikely]]
        tell(record);
}

}  // namespace rmem
