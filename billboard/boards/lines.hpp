// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the two ends of a pair do with its slot and its lines: how a message is found in them, what
/// room there is, and what is asked for ahead. The rules are in billboard/boards/line_board.hpp,
/// which uses this; the words in billboard/boards/line_format.hpp.
///
/// A peer's words are read once, bounded and then used. Thread safety: one thread. Progress: as
/// LineBoard, which states the invariants.

#include "billboard/boards/line_format.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/copy.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/write_stamps.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace billboard::lines {

template <class M, bool kAtOnce, Tuning kTuned>
class Lines {
public:
    void clear(unsigned s, std::uint32_t epoch) {
        if (is_first_of_both(epoch)) return;
        memory_.post_word(peers_[s].tx_slot, 0);
        if (kAtOnce) memory_.post_word(line_of(peers_[s].tx_lines, first_line()), 0);
    }
    bool is_clear(unsigned s, std::uint32_t epoch) const {
        const std::uint32_t line = line_stamp(first_line(), epoch_bits_of(epoch));
        return (memory_.load(next_[s].slot) & kStampMask) != (slot_stamp(epoch) | kToggle) &&
               !(kAtOnce && (memory_.load(peers_[s].rx_lines) & kStampMask) == line);
    }

protected:
    Lines(M& memory, const Geometry& geometry)
        : memory_(memory),
          geometry_(geometry),
          lines_(geometry.lines()),
          lap_shift_(static_cast<unsigned>(std::countl_zero(geometry.lines()))),
          most_lines_(geometry.lines_of_longest()),
          most_ahead_(std::min(kTuned.most_lines_ahead, geometry.lines() / 2)),
          most_bytes_(geometry.most_line_bytes()),
          next_(geometry.ranks()),
          peers_(geometry.ranks()) {}

    bool look(const Next& next, Seen& seen) const {
        seen = {memory_.load(next.slot), true};
        if ((seen.word & kStampMask) == next.if_slot) return true;
        seen = {memory_.load(next.line), false};
        if (!is_news(next, seen.word)) return false;
        // What is in the slot was posted before, and is seen to be there by now.
        const std::uint32_t flag = memory_.load(next.slot);
        if ((flag & kStampMask) == next.if_slot) seen = {flag, true};
        return true;
    }
    bool has(const Next& next) const {
        const bool in_slot = (memory_.load(next.slot) & kStampMask) == next.if_slot;
        const bool in_line = is_news(next, memory_.load(next.line));
        return static_cast<unsigned>(in_slot) | static_cast<unsigned>(in_line);  // one branch
    }
    static bool is_news(const Next& next, std::uint32_t line_word) {
        return kAtOnce ? (line_word & kStampMask) == next.seen
                       : line_word - next.seen - 1 < next.news;
    }
    [[gnu::always_inline]] void begin_line(Next& next, const Peer& p) const {
        ++next.number;
        next.line = line_of(p.rx_lines, next.number);
        next.seen = line_stamp(next.number, p.rx_epoch);
    }
    void advance(Next& next, const Peer& p, std::uint32_t words) const {
        next.number += words / kLineWords;
        next.line = line_of(p.rx_lines, next.number);
        next.seen = line_stamp(next.number, p.rx_epoch) | words % kLineWords;
    }
    // ---- Words
    std::uint32_t first_line() const { return 0 - lines_; }  // soon wraps, so that every run does
    /// As told: that of the first one is as the ring was made.
    std::uint32_t word_of_line(std::uint32_t number) const { return number - first_line(); }
    /// Of a line of which nothing is there in this lap.
    std::uint32_t line_stamp(std::uint32_t number, std::uint32_t epoch_bits) const {
        return ((number << lap_shift_) & kLap) | epoch_bits;
    }
    std::size_t line_of(std::size_t lines, std::uint32_t number) const {
        return lines + (number & (lines_ - 1)) * rmem::kLineBytes;
    }
    static constexpr bool is_sampled(std::uint32_t count) {
        return !M::kReplicated && count % rmem::kStampEvery == 0;
    }
    static constexpr std::uint32_t epoch_bits_of(std::uint32_t epoch) {
        return kAtOnce ? slot_stamp(epoch) : epoch_bits(epoch);
    }
    std::uint32_t next_header(unsigned s, Kind kind, Class cls, std::uint32_t low) const {
        if constexpr (kAtOnce) {
            const bool is_long = kind == kWhole && low > kLineRest;
            return ((next_[s].head & kCountMask) << kCountShift) |
                   (is_idle(s) ? 0 : kFlagInStream) |
                   details(is_long ? kLong : kind, cls, is_long ? 0 : low);
        }
        return (next_[s].head << kHeaderCountShift) | (is_idle(s) ? 0 : kInStream) |
               header_of(kind, cls, low);
    }

    // ---- Reading
    /// What lies behind a flag, of which `most` bytes belong to it.
    void read_flagged(unsigned s, std::size_t at, std::size_t most, std::uint32_t flag,
                      Arrival& a) const {
        const std::uint32_t low = flag & 0x3fU, kind = kind_of_flag(flag);
        a.cls = static_cast<Class>((flag >> 9) & 0xfU);
        a.corrupt = kind == kWhole ? low > most : kind > kOnBoard || low >= kBuffers;
        a.is_inline = kind == kWhole;
        if (a.corrupt) return;
        if (a.is_inline) {
            a.length = low;
            a.payload = memory_.data(at, low);
            return;
        }
        if (kind == kOnBoard) return read_descriptor(s, low, a);
        read_place(low, memory_.load(at), memory_.load(at + rmem::kWordBytes), a);
    }
    void read_slot(unsigned s, const Next& next, std::uint32_t flag, Arrival& a) const {
        read_flagged(s, next.slot + rmem::kWordBytes, kHeadBytes, flag, a);
    }
    /// Of a message written whole. Returns how many lines it has.
    std::uint32_t read_whole(unsigned s, const Next& next, std::uint32_t word, Arrival& a) {
        const std::size_t at = word_in(next.line, 0);
        const std::uint32_t flag = word & ~kFlagInStream;
        if (kind_of_flag(flag) != kLong) {
            read_flagged(s, at, kLineRest, flag, a);
            return 1;
        }
        a.cls = static_cast<Class>((flag >> 9) & 0xfU);
        a.is_inline = true;
        a.length = memory_.load(at);
        a.corrupt = a.length <= kLineRest || a.length > most_bytes_;
        if (a.corrupt) return 1;
        a.payload = joined_.data();
        copy_whole(peers_[s], next.number, a.length, joined_.data());
        return lines_of(a.length);
    }
    /// One of this class that fits its line. Returns its length; -1: the longer way takes it.
    [[gnu::always_inline]] int receive_line(Next& next, Peer& p, std::uint32_t word, Class cls,
                                            void* buf, std::size_t cap) const {
        const std::uint32_t bytes =
            (word & kDetailsMask & ~kFlagInStream) - details(kWhole, cls, 0);  // or huge
        if (bytes > kLineRest || bytes > cap || next.number + 1 - p.told_line >= lines_ / 4)
            return -1;
        rmem::copy_short(buf, memory_.data(word_in(next.line, 0), bytes), bytes);
        RMEM_MARK("receive.inline-copied");
        credit(p, next.head, word >> kCountShift);
        p.rx_in_stream = (word & kFlagInStream) != 0;
        begin_line(next, p);
        fetch_burst(next, p, p.rx_in_stream);
        return static_cast<int>(bytes);
    }
    /// The payload of a long one.
    void copy_whole(const Peer& p, std::uint32_t number, std::uint32_t bytes, void* buf) const {
        auto* to = static_cast<std::byte*>(buf);
        std::size_t part = kLongHead;
        std::uint32_t behind = 1;
        for (std::size_t rest = bytes; rest != 0; ++number, part = kLineRest, behind = 0) {
            part = std::min(part, rest);
            rmem::copy_short(to, memory_.data(word_in(line_of(p.rx_lines, number), behind), part),
                             part);
            to += part;
            rest -= part;
        }
    }
    /// What the first line says. False: nothing possible.
    [[gnu::always_inline]] bool read_header(const Next& next, std::uint32_t word, Body& b) const {
        if ((word & kLineWords) <= (next.seen & kLineMask)) return false;  // no header in the line
        b.header = memory_.load(word_in(next.line, next.seen & kLineMask));
        const std::uint32_t low = low_of(b.header), kind = kind_of(b.header);
        if (kind != kWhole && (kind > kOnBoard || low >= kBuffers)) return false;
        b.bytes = kind == kWhole ? low : kind == kInSlot ? kDescribed * rmem::kWordBytes : 0;
        b.begin_in(next);
        b.word = word;
        return b.bytes <= most_bytes_ && (word & kLineWords) >= std::min(b.end, kLineWords);
    }
    /// Waits for the other lines, if there are, and calls `copy(from, bytes)` for each piece of the
    /// payload. A sender is about to post them, but may have been stopped. False: they are not all
    /// there.
    template <class Copy>
    [[gnu::always_inline]] bool follow(const Peer& p, Body& b, Copy&& copy) const {
        const std::byte* at = memory_.data(word_in(b.line, b.begin), 0);
        if (b.end <= kLineWords) {
            copy(at, b.bytes);
            return true;
        }
        const std::uint32_t lines = (b.end - 1) / kLineWords, from = b.number;
        const std::size_t here = (kLineWords - b.begin) * rmem::kWordBytes;
        b.last = from + lines;
        b.line = line_of(p.rx_lines, b.last);
        b.end -= lines * kLineWords;
        const bool in_stream = (b.header & kInStream) != 0;
        // The sender is not disturbed in each line, but awaited behind the last one, which is
        // posted after all others.
        if (in_stream && !await_line(p, b.last, b.end, b.word)) return false;
        if (lines >= p.rx_span) {  // or the wait has asked for them
            for (std::uint32_t i = 1; i <= std::min(lines, kTuned.fetched_lines); ++i)
                __builtin_prefetch(memory_.data(line_of(p.rx_lines, from + i), 0));
        }
        copy(at, here);
        for (std::uint32_t number = from + 1; number != b.last; ++number) {
            std::uint32_t word;
            if (!in_stream && !await_line(p, number, kLineWords, word)) return false;
            copy(memory_.data(word_in(line_of(p.rx_lines, number), 0), 0), kLineRest);
        }
        if (!in_stream && !await_line(p, b.last, b.end, b.word)) return false;
        copy(memory_.data(word_in(b.line, 0), 0), b.bytes - here - (lines - 1) * kLineRest);
        return true;
    }
    /// Until `words` of the line are there: the line's own word.
    [[gnu::always_inline]] bool await_line(const Peer& p, std::uint32_t number, std::uint32_t words,
                                           std::uint32_t& word) const {
        const std::uint32_t enough = line_stamp(number, p.rx_epoch) | words;
        const std::size_t line = line_of(p.rx_lines, number);
        word = memory_.load(line);
        if (word - enough <= kLineMask - words) [[likely]]
            return true;
        for (unsigned polls = memory_.brief_polls(); polls > 0; --polls) {
            rmem::cpu_relax();
            word = memory_.load(line);
            if (word - enough <= kLineMask - words) return true;
        }
        return false;
    }
    /// False: it is not there whole.
    bool find_body(const Next& next, const Peer& p, std::uint32_t word, Body& b) const {
        b.is_corrupt = !read_header(next, word, b);
        return b.is_corrupt || follow(p, b, [](const std::byte*, std::size_t) {});
    }
    /// The same, and copies the payload.
    [[gnu::always_inline]] bool copy_body(const Peer& p, Body& b, void* buf) const {
        auto* to = static_cast<std::byte*>(buf);
        return follow(p, b, [&to](const std::byte* from, std::size_t bytes) {
            rmem::copy_short(to, from, bytes);
            to += bytes;
        });
    }
    void go_behind(Next& next, const Peer& p, const Body& b) const {
        const bool closed = is_closed(b);
        next.number = b.last + (closed ? 1 : 0);
        next.line = line_of(p.rx_lines, next.number);
        next.seen = line_stamp(next.number, p.rx_epoch) | (closed ? 0 : b.end);
    }
    void read_lines(unsigned s, const Body& b, Arrival& a) {
        a.cls = class_of(b.header);
        a.is_inline = kind_of(b.header) == kWhole;
        const Peer& p = peers_[s];
        if (a.is_inline) {
            a.length = b.bytes;
            a.payload = memory_.data(word_in(next_[s].line, b.begin), b.bytes);
            if (b.last == b.number) return;
            Body again = b;  // all of it is there
            again.last = b.number;
            again.end = b.end + (b.last - b.number) * kLineWords;
            again.line = next_[s].line;
            a.payload = joined_.data();
            a.corrupt = !copy_body(p, again, joined_.data());
            return;
        }
        if (kind_of(b.header) == kOnBoard) return read_descriptor(s, low_of(b.header), a);
        const auto word = [&](std::uint32_t i) {
            const std::uint32_t at = b.begin + i;
            return memory_.load(
                word_in(line_of(p.rx_lines, b.number + at / kLineWords), at % kLineWords));
        };
        read_place(low_of(b.header), word(0), word(1), a);
    }
    void read_descriptor(unsigned s, unsigned buffer, Arrival& a) const {
        const std::size_t at = geometry_.descriptor(s, buffer);
        read_place(buffer, memory_.load(at), memory_.load(at + rmem::kWordBytes), a);
    }
    void read_place(unsigned buffer, std::uint32_t place, std::uint32_t length, Arrival& a) const {
        a.buffer = buffer;
        a.descriptor = Descriptor::from_words(place, length, 0);
        a.length = length;
        a.corrupt = a.descriptor.offset > geometry_.data_bytes() ||
                    length > geometry_.data_bytes() - a.descriptor.offset ||
                    a.descriptor.cls != a.cls;
    }
    /// Prefetches the lines of a buffer whose descriptor is in the slot, to have them when the
    /// longer way has come there.
    [[gnu::noinline]] void fetch_buffer(unsigned s, const Next& next) const {
        if constexpr (M::kReplicated) return;  // nobody else has the bank's lines
        const std::uint32_t flag = memory_.load(next.slot);
        if ((flag & kStampMask) != next.if_slot) return;
        Arrival a;
        read_slot(s, next, flag, a);
        if (a.corrupt || a.is_inline) return;
        const std::byte* at = memory_.data(geometry_.data(s) + a.descriptor.offset, 0);
        const std::byte* end = at + std::min<std::size_t>(a.length, kTuned.fetched_bytes);
        for (; at < end; at += rmem::kLineBytes) __builtin_prefetch(at);
    }

    // ---- Room
    /// Whether a message of this size is posted without a buffer.
    [[nodiscard, gnu::always_inline]] bool is_short(std::size_t bytes) const {
        return bytes <= most_bytes_;
    }
    [[nodiscard]] std::size_t most_short() const { return most_bytes_; }
    /// What the link is asked room for: a header, and a word for each line.
    static constexpr std::size_t posted_bytes(std::size_t bytes) {
        return bytes + rmem::kLineBytes + bytes / kLineRest * rmem::kWordBytes;
    }
    [[nodiscard, gnu::always_inline]] bool is_idle(unsigned s) const {
        return peers_[s].tail == peers_[s].acknowledged;
    }
    /// For the longest message in the lines.
    [[nodiscard, gnu::always_inline]] bool seems_to_have_room(const Peer& p) const {
        return p.tail - p.acknowledged < kCountMask &&
               p.tx_number + most_lines_ - p.free_from < lines_;
    }
    [[nodiscard, gnu::noinline]] bool finds_room(unsigned s) {
        Peer& p = peers_[s];
        if (!p.tx_open) return false;
        look_for_room(s);
        return is_idle(s) || seems_to_have_room(p);
    }
    /// What s has told by its words, and by messages not received yet. The words are read first:
    /// then all messages that are not there yet were posted after them, and count at least as much.
    void look_for_room(unsigned s) {
        Peer& p = peers_[s];
        const std::uint32_t told = count_of_word(memory_.load(p.rx_count));
        const std::uint32_t left = memory_.load(p.rx_position) + first_line();
        look_at_counts(s);
        // Anything else is not a count that s can have told, or an old one.
        if (p.tail - told < p.tail - p.acknowledged) p.acknowledged = told;
        if (p.tx_number - left < p.tx_number - p.free_from) p.free_from = left;
    }
    void look_at_counts(unsigned s) {
        Peer& p = peers_[s];
        Next next = next_[s];
        Seen seen;
        while (next.head - next_[s].head < kCountMask && look(next, seen)) {
            if (seen.in_slot || kAtOnce) credit(p, next.head, seen.word >> kCountShift);
            if (seen.in_slot) {
                next.if_slot ^= kToggle;
            } else if constexpr (kAtOnce) {
                const bool is_long = kind_of_flag(seen.word & ~kFlagInStream) == kLong;
                const std::uint32_t bytes = is_long ? memory_.load(word_in(next.line, 0)) : 0;
                if (bytes > most_bytes_) break;
                advance(next, p, lines_of(bytes) * kLineWords);
            } else {
                Body body;
                if (!find_body(next, p, seen.word, body) || body.is_corrupt) break;
                credit(p, next.head, body.header >> kHeaderCountShift);
                go_behind(next, p, body);
            }
            ++next.head;
        }
    }
    [[gnu::always_inline]] void next_line(Peer& p) const {
        p.tx_words = 0;
        ++p.tx_number;
        p.tx_line = line_of(p.tx_lines, p.tx_number);
        p.tx_line_stamp = line_stamp(p.tx_number, p.tx_epoch);
    }
    static Ahead ahead_of(const Peer& p) {
        return {p.rx_span > kTuned.most_ahead ? 0 : p.rx_span - 1,
                p.tx_span > kTuned.most_taken ? 0 : p.tx_span};
    }
    [[gnu::always_inline]] void fetch(const Next& next, const Peer& p, const Ahead& ahead) const {
        if constexpr (M::kReplicated) return;
        for (std::uint32_t i = 1; i <= ahead.fetched; ++i)
            __builtin_prefetch(memory_.data(line_of(p.rx_lines, next.number + i), 0));
        for (std::uint32_t i = 0; i < ahead.taken; ++i)
            rmem::take_line(memory_.own(line_of(p.tx_lines, p.tx_number + i)));
    }
    /// Sends for the line that an answer to s is written to, while the caller works on it: s has
    /// read that line since.
    void expect_answer(unsigned s) const {
        // Or the last wait has asked for the lines of one that is longer.
        if (!M::kReplicated && peers_[s].ahead.taken == 0)
            rmem::take_line(memory_.own(peers_[s].tx_slot));
    }
    /// A look for what s sends was too early: a stream begins behind it.
    void found_nothing(unsigned s) { peers_[s].apart_at = next_[s].number + kTuned.apart_first; }
    /// After a poll for anybody's message that has found nothing: asks for the lines of an exchange
    /// with s, who has sent the last one.
    void expect_more(unsigned s) {
        const Next& next = next_[s];
        Peer& p = peers_[s];
        if (next.head != p.awaited) {
            found_nothing(s);
            p.ahead = next.head - p.awaited > 1 || position_of(next) == p.awaited_in ? Ahead{}
                                                                                     : ahead_of(p);
            p.awaited = next.head;
            p.awaited_in = position_of(next);
        }
        fetch(next, p, p.ahead);
    }
    /// After a message that was awaited, of a sender that does not wait for an answer: the next
    /// ones are probably there by now.
    [[gnu::always_inline]] void fetch_burst(const Next& next, const Peer& p, bool in_stream) const {
        if (!in_stream || next.head - p.awaited > 1) return;
        for (std::uint32_t i = 0; i < kTuned.burst_lines; ++i)
            __builtin_prefetch(memory_.data(line_of(p.rx_lines, next.number + i), 0));
    }
    /// In a long stream of messages of several lines: a receiver right behind its sender takes
    /// lines from it that are still to be written, since its processor fetches ahead, and both are
    /// three times slower than apart. So it looks now and then, and gives the sender time.
    [[gnu::always_inline]] void keep_apart(const Next& next, Peer& p) const {
        if (M::kReplicated || static_cast<std::int32_t>(next.number - p.apart_at) < 0) [[likely]]
            return;
        p.apart_at = next.number + kTuned.apart_every;
        if (lines_ <= kTuned.apart_first) return;  // there is no room to be apart
        const std::uint32_t ahead = next.number + kTuned.apart;
        const std::uint32_t word = memory_.load(line_of(p.rx_lines, ahead));
        if (word - line_stamp(ahead, p.rx_epoch) <= kLineMask) return;
        for (unsigned i = 0; i < kTuned.pauses_apart; ++i) rmem::cpu_relax();
    }
    /// A payload of several lines, all of them posted but the last one. How many.
    [[gnu::always_inline]] std::uint32_t write_lines(Peer& p, std::uint32_t begin,
                                                     std::uint32_t end, const std::byte* from,
                                                     std::size_t bytes) {
        const std::uint32_t lines = (end - 1) / kLineWords;
        const std::size_t here = (kLineWords - begin) * rmem::kWordBytes;
        if (here != 0) memory_.write(word_in(p.tx_line, begin), from, here);
        std::uint32_t number = p.tx_number;
        const std::uint32_t last = number + lines;
        for (;; from += kLineRest) {
            RMEM_MARK("post.line-written");
            memory_.post_word(line_of(p.tx_lines, number),
                              line_stamp(number, p.tx_epoch) | kClosedLine | kLineWords);
            RMEM_MARK("post.line-posted");
            if (++number == last) break;
            memory_.write(word_in(line_of(p.tx_lines, number), 0), from + here, kLineRest);
        }
        p.tx_number = last - 1;
        next_line(p);
        memory_.write(word_in(p.tx_line, 0), from + here, bytes - here - (lines - 1) * kLineRest);
        return lines;
    }
    /// Posts a message at once, in lines of its own. How many.
    std::uint32_t post_whole(Peer& p, std::uint32_t flag, const void* payload, std::size_t bytes) {
        constexpr std::size_t kLine = kLineWords + 1;
        const std::size_t line = p.tx_line, first = p.tx_number & (lines_ - 1);
        const auto* from = static_cast<const std::byte*>(payload);
        std::array<std::uint32_t, kLine*(kMaxLineBytes / kLineRest + 2)> words;
        words[0] = p.tx_line_stamp | flag;
        words[1] = static_cast<std::uint32_t>(bytes);
        std::size_t at = bytes > kLineRest ? 2 : 1;  // of the part
        std::uint32_t lines = 1;
        for (;; ++lines) {
            const std::size_t part = std::min(bytes, (lines * kLine - at) * rmem::kWordBytes);
            next_line(p);
            if (part % rmem::kWordBytes != 0) words[at + part / rmem::kWordBytes] = 0;
            if (part != 0) std::memcpy(&words[at], from, part);
            at += (part + rmem::kWordBytes - 1) / rmem::kWordBytes;
            from += part;
            bytes -= part;
            if (bytes == 0) break;
            words[at++] = p.tx_line_stamp;
        }
        if (p.tx_clears) [[unlikely]]
            clear_next(p);
        const std::size_t here = std::min(at, (lines_ - first) * kLine);
        const std::size_t posted = at <= M::kMaxPostWords ? here : kLine;
        RMEM_MARK("post.line-written");
        if (here != at) memory_.write(p.tx_lines, &words[here], (at - here) * rmem::kWordBytes);
        if (here > posted)
            memory_.write(line + posted * rmem::kWordBytes, &words[posted],
                          (here - posted) * rmem::kWordBytes);
        memory_.post(line, words.data(), std::min(posted, here));
        RMEM_MARK("post.line-posted");
        return lines;
    }
    /// What a former incarnation wrote where the next message will begin.
    void clear_next(Peer& p) {
        p.tx_clears = p.tx_number - first_line() < lines_;
        if (p.tx_clears) memory_.post_word(p.tx_line, 0);
    }
    /// The line that number ahead is taken from the receiver, which read it in the last lap.
    [[gnu::always_inline]] void take_ahead(const Peer& p, std::uint32_t lines) const {
        if constexpr (!M::kReplicated)
            rmem::take_line(memory_.own(line_of(p.tx_lines, p.tx_number + lines)));
    }

    M& memory_;
    const Geometry& geometry_;
    std::uint32_t lines_;
    unsigned lap_shift_;  ///< lines_ to kLap
    std::uint32_t most_lines_, most_ahead_;
    std::size_t most_bytes_;
    std::vector<Next> next_;
    std::vector<Peer> peers_;
    std::array<std::byte, kMaxLineBytes> joined_{};  ///< a message that lies in several lines
};

}  // namespace billboard::lines
