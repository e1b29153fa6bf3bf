// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The log of one rank's writes: the `ring` link has it instead of a wire.
///
/// Layout    two lines (head | reclaimed), beside those of all logs, since everybody looks at all
///           of them, and a circular array of 32-byte units. A record is one
///           unit, which holds the value of a one-word write, and for longer writes the words in
///           the units after it. A record never wraps: a pad record fills the end of the array.
/// Positions count units since the ring was made, so they only grow; `position % capacity` is a
///           place. They survive the writer: a restarted rank goes on where its former incarnation
///           stopped.
/// Thread safety: one LogWriter per log; any number of LogReaders, each with one user at a time.
/// Invariants: records at or above `reclaimed` and below `head` are whole. The writer moves
///           `reclaimed` before it reuses anything, so a reader that looks at it after reading
///           knows whether it has read a record or newer bytes over it.
/// Progress: neither side waits. append() needs room, which the writer is told by reclaim().
/// Trust:    a reader bounds everything it finds by the log's size; see LogReader::Found.

#include "rmem/base/check.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/ring/config.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rmem {

/// A write without its words.
struct LogRecord {
    static constexpr std::uint32_t kInterrupt = 1;  ///< carries the interrupt mark
    static constexpr std::uint32_t kMeLast = 2;     ///< the own bank gets it when it has come round
    static constexpr std::uint32_t kUntimed = 4;    ///< it was made at that time or later
    static constexpr std::uint32_t kMore = 8;       ///< the next record is of the same commit
    /// The words lie in the bank, and not here, until the record is reclaimed: for Role::engine.
    static constexpr std::uint32_t kInBank = 16;
    static constexpr std::uint32_t kFlagFirst = 32;  ///< its first word is stored last
    static constexpr unsigned kPartShift = 8;  ///< above it: which bytes of its one word, 0: all

    std::int64_t written_ns = 0;
    std::uint64_t offset = 0;  ///< bytes, a multiple of the word
    std::uint32_t words = 0;
    std::uint32_t flags = 0;
    std::uint32_t delay_ns = 0;      ///< injected: the card gets it later by this
    std::uint32_t queued_words = 0;  ///< in the transmit FIFO before it, at most

    static constexpr std::uint32_t flags_of(WordPart part) noexcept {
        return part == kWholeWord ? 0 : std::uint32_t{part} << kPartShift;
    }
    /// Of its word, or its words.
    constexpr WordPart part() const noexcept {
        const auto part = static_cast<WordPart>(flags >> kPartShift & kWholeWord);
        return part == 0 ? kWholeWord : part;
    }
};

inline constexpr std::size_t kLogUnitBytes = 32;
inline constexpr std::uint32_t kMaxRecordWords = 256;         ///< longer writes are several records
inline constexpr std::uint32_t kMaxBankRecordWords = 0xffff;  ///< the same of those in the bank

/// One unit; parts 1 and 2 are packed by LogWriter and unpacked by LogReader.
struct LogUnit {
    std::atomic<std::uint64_t> part[4];
};
static_assert(sizeof(LogUnit) == kLogUnitBytes);

struct LogHeader {
    alignas(kLineBytes) std::atomic<std::uint64_t> head;       ///< position after the newest record
    std::atomic<std::uint64_t> everywhere;                     ///< records below are in all banks
    alignas(kLineBytes) std::atomic<std::uint64_t> reclaimed;  ///< records below may be overwritten
    /// The incarnation that delivers its writes itself; 0: none (rmem/link/ring/delivery.hpp).
    std::atomic<std::uint32_t> deliverer;
    /// On a wire that takes time: records below had come round, and nothing was known to be on the
    /// wire, at quiet_ns or before.
    std::atomic<std::uint64_t> quiet;
    std::atomic<std::int64_t> quiet_ns;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Where a log's parts lie.
class LogArea {
public:
    LogArea(LogHeader& header, std::byte* units, std::size_t bytes) noexcept
        : header_(&header),
          units_(reinterpret_cast<LogUnit*>(units)),
          capacity_(bytes / kLogUnitBytes) {}

    /// One by itself, with its lines before it.
    LogArea(std::byte* log, std::size_t bytes) noexcept
        : LogArea(*reinterpret_cast<LogHeader*>(log), log + sizeof(LogHeader),
                  bytes - sizeof(LogHeader)) {}

    LogHeader& header() const noexcept { return *header_; }
    LogUnit& unit(std::uint64_t place) const noexcept { return units_[place]; }
    std::uint64_t capacity() const noexcept { return capacity_; }
    std::uint64_t place_of(std::uint64_t position) const noexcept { return position % capacity_; }

    /// Units of a record with `words` words.
    static constexpr std::uint64_t units_of(std::uint32_t words) noexcept {
        return 1 + (words == 1 ? 0 : (words * kWordBytes + kLogUnitBytes - 1) / kLogUnitBytes);
    }
    static constexpr std::uint64_t units_of(const LogRecord& record) noexcept {
        return (record.flags & LogRecord::kInBank) != 0 ? 1 : units_of(record.words);
    }
    /// Maximum of units of `writes` writes of `bytes` bytes in all: a head and an unfilled unit
    /// each.
    static constexpr std::uint64_t units_of_group(std::size_t bytes, std::size_t writes) noexcept {
        return bytes / kLogUnitBytes + 2 * (writes + bytes / (kMaxRecordWords * kWordBytes));
    }

private:
    LogHeader* header_;
    LogUnit* units_;
    std::uint64_t capacity_;
};

class RMEM_API LogWriter {
public:
    static constexpr std::uint64_t kMaxPad = LogArea::units_of(kMaxRecordWords);

    /// Goes on at the head that it finds.
    explicit LogWriter(const LogArea& log) noexcept;

    std::uint64_t head() const noexcept { return head_; }
    std::uint64_t capacity() const noexcept { return area_.capacity(); }
    /// Whether records of `units` units in all fit, whatever the wrap costs.
    [[nodiscard]] bool fits(std::uint64_t units) const noexcept {
        return head_ + units + kMaxPad <= limit_;
    }
    /// All readers have read what lies below `position`.
    void reclaim(std::uint64_t position) noexcept;

    /// Adds a record and publishes it. `words` are `record.words` words at any alignment. The
    /// caller has made sure that it fits.
    void append(const LogRecord& record, const void* words) noexcept;

    /// All that it holds has come round, and the wire is quiet.
    void note_quiet(std::int64_t now) noexcept;

private:
    friend class LogReader;
    static constexpr unsigned kWordsShift = 48;  ///< of part 1: the offset in words is below
    static constexpr std::uint32_t kPad = 0x8000'0000U;  ///< a record that only fills the array

    void pad() noexcept;
    void put_words(const void* words, std::uint32_t count) noexcept;

    LogArea area_;
    std::uint64_t head_;
    std::uint64_t place_;
    std::uint64_t limit_;
};

class RMEM_API LogReader {
public:
    enum class Found {
        none,    ///< everything has been read
        record,  ///< a record, which stays until the position is reclaimed
        lapped,  ///< overwritten before it was read: seek() to where others are
        corrupt  ///< nothing that a LogWriter writes; skip_all() goes on with what comes
    };
    /// A record, and where it lies.
    struct Entry {
        LogRecord record;
        std::uint32_t value = 0;  ///< the word of a record that has one
        std::uint64_t position = 0;
        std::uint64_t next = 0;   ///< position after it
        std::uint64_t place = 0;  ///< of its words
    };

    /// The kind of reader. The writer reclaims nothing that a member lacks, but it does not know of
    /// observers: they may still read reclaimed records, until these are overwritten. The engine is
    /// a member that looks for words in the bank.
    enum class Role { member, observer, engine };

    explicit LogReader(const LogArea& log, Role role = Role::member) noexcept;

    /// Whether there is more to read; looks at the log when all it knew of is read.
    bool refresh() noexcept {
        // (1) - this acquire-load synchronizes-with the release-store (2)
        if (position_ == head_) head_ = area_.header().head.load(std::memory_order_acquire);
        return position_ != head_;
    }
    /// The oldest record that has not been read.
    [[nodiscard]] Found peek(Entry& entry) noexcept;
    /// Goes behind an entry that peek() gave.
    void pass(const Entry& entry) noexcept {
        place_ += entry.next - entry.position;
        if (place_ >= area_.capacity()) place_ = 0;
        position_ = entry.next;
    }
    void seek(std::uint64_t position) noexcept {
        position_ = head_ = position;
        place_ = area_.place_of(position);
    }
    void skip_all() noexcept;

    std::uint64_t position() const noexcept { return position_; }
    const LogHeader& header() const noexcept { return area_.header(); }
    /// The oldest position that a member can read; a record, or its pad, begins there.
    std::uint64_t oldest() const noexcept {
        // (10) - this acquire-load synchronizes-with the release-store (3) of the overwriting words
        return area_.header().reclaimed.load(std::memory_order_acquire);
    }
    /// Units of the log.
    std::uint64_t capacity() const noexcept { return area_.capacity(); }
    /// What lay below this had left the wire, which was quiet, before that time; 0: nothing has.
    std::uint64_t quiet_before(std::int64_t time_ns) const noexcept;

    /// An entry's words where they lie, for a member. They stay until they are reclaimed, if their
    /// writer is honest.
    [[nodiscard]] const void* words(const Entry& entry) const noexcept {
        return entry.record.words == 1 ? static_cast<const void*>(&entry.value)
                                       : &area_.unit(entry.place);
    }
    /// An entry's words, into private memory for as many. False if it was overwritten meanwhile
    /// (then some may be wrong).
    [[nodiscard]] bool load_words(const Entry& entry, std::uint32_t* to) const noexcept;
    /// Stores an entry's words at `to`, none torn (rmem/base/word_block.hpp). False if it was
    /// overwritten meanwhile: then it stores none.
    [[nodiscard]] bool copy_words(const Entry& entry, std::byte* to) const noexcept;

private:
    static constexpr std::uint32_t kPad = LogWriter::kPad;

    [[nodiscard]] bool is_overwritten(std::uint64_t position) const noexcept {
        return oldest() > position && is_beyond(position);
    }
    [[nodiscard]] bool is_beyond(std::uint64_t position) const noexcept;

    LogArea area_;
    Role role_;
    std::uint64_t position_ = 0;
    std::uint64_t head_ = 0;
    std::uint64_t place_ = 0;  ///< of the position
};

// ---- Inline definitions
//
// A unit is stored with release although `head` publishes it: it must also not become visible
// before the `reclaimed` that allowed to overwrite what was there, see (3).

[[gnu::always_inline]] inline void LogWriter::append(const LogRecord& record,
                                                     const void* words) noexcept {
    const std::uint64_t units = LogArea::units_of(record);
    if (place_ + units > area_.capacity()) [[unlikely]]
        pad();
    std::uint32_t value = 0;
    if (record.words == 1) std::memcpy(&value, words, sizeof value);
    LogUnit& unit = area_.unit(place_);
    const auto put = [&unit](unsigned i, std::uint64_t part) {
        // (3) - this release-store synchronizes-with the acquire-loads (4) and (10)
        unit.part[i].store(part, std::memory_order_release);
    };
    put(0, static_cast<std::uint64_t>(record.written_ns));
    put(1, std::uint64_t{record.words} << kWordsShift | record.offset / kWordBytes);
    put(2, std::uint64_t{record.delay_ns} << 32U | record.flags);
    put(3, std::uint64_t{record.queued_words} << 32U | value);
    if (units != 1) put_words(words, record.words);
    head_ += units;
    place_ = place_ + units == area_.capacity() ? 0 : place_ + units;
    RMEM_CHECK_IF(false, head_ <= limit_ && place_ == area_.place_of(head_));
    // (2) - this release-store synchronizes-with the acquire-loads (1), write_log.cpp (11),
    // write_log.cpp (13), rmem/link/ring/memory.cpp (7) and tools/watch/bank_view.cpp (2)
    area_.header().head.store(head_, std::memory_order_release);
}

inline LogReader::Found LogReader::peek(Entry& entry) noexcept {
    while (refresh()) {
        if (head_ - position_ > area_.capacity()) [[unlikely]]
            return head_ > position_ ? Found::lapped : Found::corrupt;
        std::uint64_t parts[4];
        for (unsigned i = 0; i < 4; ++i) {
            // (4) - this acquire-load synchronizes-with the release-stores (3),
            // write_log.cpp (6) and write_log.cpp (7)
            parts[i] = area_.unit(place_).part[i].load(std::memory_order_acquire);
        }
        if (is_overwritten(position_)) [[unlikely]]
            return Found::lapped;
        entry.record.flags = static_cast<std::uint32_t>(parts[2]);
        if ((entry.record.flags & kPad) != 0) [[unlikely]] {
            position_ += area_.capacity() - place_;
            place_ = 0;
            continue;
        }
        entry.record.written_ns = static_cast<std::int64_t>(parts[0]);
        entry.record.offset =
            (parts[1] & ((std::uint64_t{1} << LogWriter::kWordsShift) - 1)) * kWordBytes;
        entry.record.words = static_cast<std::uint32_t>(parts[1] >> LogWriter::kWordsShift);
        entry.record.delay_ns = static_cast<std::uint32_t>(parts[2] >> 32U);
        entry.record.queued_words = static_cast<std::uint32_t>(parts[3] >> 32U);
        entry.value = static_cast<std::uint32_t>(parts[3]);
        const std::uint64_t units = LogArea::units_of(entry.record);
        entry.position = position_;
        entry.next = position_ + units;
        entry.place = place_ + 1;
        const bool is_in_bank = (entry.record.flags & LogRecord::kInBank) != 0;
        const bool fits =
            is_in_bank ? role_ == Role::engine : entry.record.words <= kMaxRecordWords;
        const bool has_part = entry.record.part() == kWholeWord || entry.record.words == 1;
        const bool whole = entry.record.words >= 1 && fits && has_part && entry.next <= head_ &&
                           place_ + units <= area_.capacity();
        return whole ? Found::record : Found::corrupt;
    }
    return Found::none;
}

}  // namespace rmem
