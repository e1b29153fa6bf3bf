// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The words of a slot and of lines, and what is known of a pair of ranks. The rules are in
/// billboard/boards/line_board.hpp.
///
/// Flag word   toggle or lap:1 | epoch:8 | count:10 | class:4 | in a stream:1 | kind:2
///             | length or buffer:6
///   of a slot and, of messages written whole, of their first line; kind kLong: the length is the
///   next word. The words of their other lines are the flag's first nine bits.
/// In pieces:
/// Line word   lap:1 | epoch:26 | closed:1 | words of the line that are there:4
/// Header      count:10 | 0:3 | in a stream:1 | class:4 | kind:2 | length or buffer:12
///   A slot is new when its toggle has changed, a line when more of it is there in this lap, or
///   when its lap has begun.
///   The epoch is that of the two ranks' incarnations together, so a former incarnation's message
///   is not taken for new; where it has few bits the sender clears the word that its next message
///   will be found by. The count is of the messages that its sender has taken from the
///   receiver.
///
/// Values, and functions of them. Thread safety: as any values.

#include "billboard/boards/arrival.hpp"
#include "rmem/base/limits.hpp"

#include <cstddef>
#include <cstdint>

namespace billboard::lines {

inline constexpr unsigned kCountShift = 13, kEpochShift = 23;
inline constexpr std::uint32_t kDetailsMask = (1U << kCountShift) - 1;
inline constexpr std::uint32_t kCountMask = 0x3ff;  ///< as many messages are unread at most
inline constexpr std::uint32_t kToggle = 1U << 31, kLap = 1U << 31;
inline constexpr unsigned kHeaderCountShift = 22;
inline constexpr std::uint32_t kInStream = 1U << 18, kFlagInStream = 1U << 8;
inline constexpr std::uint32_t kHeaderMask = ((1U << kHeaderCountShift) - 1) & ~kInStream;
inline constexpr std::uint32_t kStampMask = ~std::uint32_t{0} << kEpochShift;
inline constexpr std::uint32_t kNoStamp = 1;     // of no flag
inline constexpr std::uint32_t kLineWords = 15;  // of a line, behind its own
inline constexpr std::uint32_t kClosedLine = 16, kLineMask = 31;
inline constexpr std::uint32_t kNews = 31;  // a word's difference from what was seen, and one
inline constexpr std::size_t kLineRest = kLineWords * rmem::kWordBytes;
inline constexpr std::size_t kLongHead = kLineRest - rmem::kWordBytes;  ///< behind its length
inline constexpr unsigned kDescribed = 2;                               // words of a descriptor
inline constexpr unsigned kSlotPlace = 0, kLinePlace = 1;
/// Not acknowledged while posting is closed: too many for counts of the peer to make room.
inline constexpr std::uint32_t kClosed = 0x80000000;
enum Kind : std::uint32_t { kWhole = 0, kInSlot = 1, kOnBoard = 2, kLong = 3 };

/// The board is right with any values of these: they are times and distances that were best where
/// they were measured (docs/design/billboard.md).
struct Tuning {
    std::size_t fetched_bytes = 256;  ///< of a buffer; the rest comes by its order of reading
    std::uint32_t fetched_lines = 16;
    std::uint32_t burst_lines = 8, most_in_burst = 3;  ///< of all, of each message
    std::uint32_t lines_ahead = 4;                     ///< taken by a sender in a stream
    std::uint32_t most_lines_ahead = 16;               ///< the same, of messages of several
    std::uint32_t most_ahead = 10, most_taken = 5;     ///< lines
    unsigned near_pauses = 14;  ///< of a wait for an answer: lines cross fast
    unsigned pauses_in_lines = 2, pauses_in_stream = 4;             ///< between polls
    std::uint32_t apart_first = 160, apart_every = 64, apart = 48;  ///< lines
    unsigned pauses_apart = 24;
};

/// Where s's next message may be, and how its words will look there. Dense, since BBP_ANY looks
/// at all of them.
struct Next {
    std::size_t slot = 0, line = 0;    ///< its words
    std::uint32_t if_slot = kNoStamp;  ///< the flag's stamp, once it is there
    /// The line's word, as long as no more is there; of messages written whole its stamp, once one
    /// is there.
    std::uint32_t seen = kNoStamp;
    std::uint32_t news = 0;            ///< kNews; 0: closed
    std::uint32_t head = kFirstCount;  ///< messages taken from s
    std::uint32_t number = 0;          ///< of the line
    std::uint32_t after = 0;           ///< words before the message after this one: peek's
};
/// What a waiting rank asks for, in case the next messages are as long as the last ones.
struct Ahead {
    std::uint32_t fetched = 0;  ///< behind the one that it polls
    std::uint32_t taken = 0;    ///< its own, for what it sends next
};
struct alignas(rmem::kLineBytes) Peer {
    std::uint32_t tail = kFirstCount;  ///< posted to s
    std::uint32_t acknowledged = kFirstCount - kClosed;
    std::uint32_t credit_from = kFirstCount;  ///< first message of s whose count is still news
    std::uint32_t told = kFirstCount;         ///< Next::head as s knows it
    std::uint32_t tx_stamp = 0;               ///< of the next flag
    std::size_t tx_slot = 0, tx_lines = 0, rx_lines = 0;
    std::uint32_t tx_number = 0, tx_words = 0;  ///< the line written last, and how full it is
    std::uint32_t tx_line_stamp = 0;
    std::size_t tx_line = 0;
    std::uint32_t free_from = 0;                ///< s has left all lines before this one
    std::uint32_t told_line = 0;                ///< Next::number as s knows it
    std::uint32_t tx_epoch = 0, rx_epoch = 0;   ///< their bits in a line's word
    std::uint32_t ack_flags = 0;                ///< as written to s's partition
    std::uint32_t awaited = 0, awaited_in = 0;  ///< Next::head and position at the last wait
    Ahead ahead;
    std::uint32_t tx_span = 1, rx_span = 1;     ///< lines of the last message sent, and taken
    std::size_t rx_count = 0, rx_position = 0;  ///< where s tells what it has consumed
    std::uint32_t apart_at = 0;                 ///< Next::number at the next look for the distance
    std::uint32_t waited = 0;                   ///< pauses of the last wait
    bool tx_open = false;
    bool tx_clears = false;     ///< in the first lap of a later incarnation
    bool rx_in_stream = false;  ///< the last message in the lines was followed by others
};

/// A new word: the slot's, or the line's.
struct Seen {
    std::uint32_t word;
    bool in_slot;
};

// ---- Words

constexpr std::uint32_t bit(unsigned i) {
    return std::uint32_t{1} << i;
}
constexpr std::uint32_t slot_stamp(std::uint32_t epoch) {
    return (epoch << kEpochShift) & ~kToggle;
}
constexpr std::uint32_t details(Kind kind, Class cls, std::uint32_t low) {
    return (static_cast<std::uint32_t>(cls) << 9) | (kind << 6) | low;
}
constexpr std::uint32_t kind_of_flag(std::uint32_t flag) {
    return (flag >> 6) & 7U;
}
constexpr std::uint32_t header_of(Kind kind, Class cls, std::uint32_t low) {
    return (static_cast<std::uint32_t>(cls) << 14) | (kind << 12) | low;
}
constexpr std::uint32_t epoch_bits(std::uint32_t epoch) {
    return (epoch << 5) & ~kLap;
}
/// Of a message written whole.
constexpr std::uint32_t lines_of(std::uint32_t bytes) {
    return bytes <= kLineRest
               ? 1
               : 1 + static_cast<std::uint32_t>((bytes - kLongHead + kLineRest - 1) / kLineRest);
}
constexpr std::size_t word_in(std::size_t line, std::uint32_t words) {
    return line + (1 + words) * rmem::kWordBytes;
}

/// Where a message in the lines is.
struct Body {
    std::uint32_t header = 0, bytes = 0;
    std::uint32_t number = 0, begin = 0;  ///< of its first line, and of the payload, in words
    std::uint32_t last = 0;               ///< line
    std::uint32_t end = 0;                ///< in that line, in words
    std::size_t line = 0;                 ///< its place
    std::uint32_t word = 0;               ///< its own
    bool is_corrupt = false;

    /// As long as no more than its first line is known.
    void begin_in(const Next& next) {
        number = last = next.number;
        begin = (next.seen & kLineMask) + 1;
        end = begin + (bytes + 3) / 4;
        line = next.line;
    }
};
inline bool is_closed(const Body& b) {
    return (b.word & kLineMask) == (kClosedLine | b.end);
}
constexpr Kind kind_of(std::uint32_t header) {
    return static_cast<Kind>((header >> 12) & 3U);
}
constexpr std::uint32_t low_of(std::uint32_t header) {
    return header & 0xfffU;
}
constexpr Class class_of(std::uint32_t header) {
    return static_cast<Class>((header >> 14) & 0xfU);
}
/// Where the next message, if it is like this one, would touch a line more, it begins one:
/// `begin` and `end` are those of a message in one line. One in several lines touches as many
/// either way.
inline bool closes(bool idle, std::uint32_t begin, std::uint32_t end) {
    return idle || end + (end - begin) > kLineWords;
}
inline bool closes(bool idle, std::uint32_t end) {
    return idle || end == kLineWords;
}
inline std::uint32_t last_word(const Peer& p, bool closes, std::uint32_t end) {
    return p.tx_line_stamp | (closes ? kClosedLine : 0) | end;
}

/// In the lines, in words.
inline std::uint32_t position_of(const Next& next) {
    return next.number * 16 + (next.seen & kLineMask);
}
/// Before the message after this one. After something impossible: a new line.
inline std::uint32_t words_until_next(const Body& b) {
    if (b.is_corrupt) return kLineWords;
    return (b.last - b.number) * kLineWords + (is_closed(b) ? kLineWords : b.end);
}
/// Takes s's count out of its message of this number. A count has few bits, so it must not be
/// older than the known one; each message's is not older than that of the one before.
inline void credit(Peer& p, std::uint32_t number, std::uint32_t count) {
    if (static_cast<std::int32_t>(number - p.credit_from) < 0) return;
    p.credit_from = number + 1;
    const std::uint32_t more = (count - p.acknowledged) & kCountMask;
    if (more <= p.tail - p.acknowledged) p.acknowledged += more;
}

}  // namespace billboard::lines
