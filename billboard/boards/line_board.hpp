// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The `inline` posting board: per pair of ranks and direction a slot for what is answered, and a
/// ring of lines for all else.
///
/// Slot        half a cache line, a flag word and kHeadBytes; the other half is the slot of the
///             other direction. A message of up to kHeadBytes lies there when all before it are
///             known to be taken. So two ranks that answer each other stay on one line, which
///             goes to and fro.
/// Lines       everything else is a stream of words in lines that follow each other: a header and
///             the payload, in the next lines as far as it does not fit. Each line begins with a
///             word of its own, which tells how much of the line is there: a reader polls one word
///             at a place that it knows, and follows the writer line by line. Nothing but these
///             words ever lies where a line begins, so that old payload is never taken for one.
/// Rhythm      A message that finds all before it taken is followed by an answer, not by another
///             message: it closes its last line, and the next one begins a line of its own, which
///             nobody polls while it is written. In a stream the next message begins behind it,
///             unless it would not fit this line but a new one.
/// Whole       where each write has its price (rmem::PostsWhole), a message has lines of its
///             own, and its first line's word, a flag as in the slot, is posted last: so it is
///             there whole, and is one or two writes. Longer ones go through buffers the sooner.
/// Room        a rank that answers tells in each answer, for nothing, how much it has taken. A
///             receiver that only receives writes what it has taken, messages and lines, to two
///             words each quarter of the lines; a sender reads them, and its unread messages, only
///             when there seems to be no room.
/// Ahead       a rank that waits takes its own next lines with each poll, and fetches those behind
///             the polled one, as many as the last messages had; in a stream the sender takes lines
///             that the receiver has read.
/// Bells       billboard/boards/bells.hpp, with more than 16 ranks on one bank.
///
/// Invariants: a line is written again only after its reader has told that it has left it; what the
/// slot holds was posted before anything in the lines that is not taken; one writer per word.
/// Thread safety: one thread. Progress: every call is wait-free; loops are bounded by the number of
/// ranks, of messages or of lines. A message whose sender stops in its middle is not there yet.
/// Source: the MESSAGE flag and descriptor of the paper, put beside the message.

#include "billboard/boards/arrival.hpp"
#include "billboard/boards/bells.hpp"
#include "billboard/boards/lines.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/copy.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/write_stamps.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

namespace billboard::lines {

template <class M, bool kAtOnce, Tuning kTuned = Tuning{}>
class LineBoardOf : private Lines<M, kAtOnce, kTuned> {
    static_assert(rmem::Memory<M> && (!kAtOnce || rmem::PostsWhole<M>));
    using Base = Lines<M, kAtOnce, kTuned>;
    using Base::advance, Base::ahead_of, Base::begin_line, Base::copy_body, Base::fetch,
        Base::fetch_buffer, Base::fetch_burst, Base::find_body, Base::finds_room, Base::first_line,
        Base::go_behind, Base::has, Base::is_idle, Base::is_news, Base::epoch_bits_of,
        Base::is_sampled, Base::keep_apart, Base::line_of, Base::line_stamp, Base::look,
        Base::next_header, Base::next_line, Base::read_lines, Base::read_slot,
        Base::seems_to_have_room, Base::take_ahead, Base::word_of_line, Base::write_lines;
    using Base::memory_, Base::geometry_, Base::lines_, Base::most_bytes_, Base::most_ahead_,
        Base::next_, Base::peers_, Base::joined_;

public:
    static constexpr std::uint32_t kMaxUnread = kCountMask;
    static constexpr std::size_t kInlineBytes = kMaxLineBytes;
    static constexpr bool kFollows = !kAtOnce;        ///< a message may be there in part
    static constexpr bool kFills = !M::kReplicated;   ///< large messages are posted before filled
    static constexpr bool kHasShortCalls = !kAtOnce;  ///< post_at_once() and those below it
    static constexpr std::uint32_t kTellEvery = 128;

    LineBoardOf(M& memory, const Geometry& geometry, unsigned me)
        : Base(memory, geometry),
          me_(me),
          bells_(memory, geometry, me),
          posted_(geometry.ranks(), 0) {
        for (unsigned s = 0; s < geometry.ranks(); ++s) {
            Peer& p = peers_[s];
            next_[s].slot = geometry.slot(me, s);
            next_[s].line = p.rx_lines = geometry.lines(me, s);
            p.tx_slot = geometry.slot(s, me);
            p.tx_lines = geometry.lines(s, me);
            p.rx_count = geometry.consumed(me, s);
            p.rx_position = geometry.position(me, s);
        }
    }

    // ---- Connection
    using Base::clear, Base::is_clear;
    void open_rx(unsigned s, std::uint32_t epoch) {
        Peer& p = peers_[s];
        p.told = p.credit_from = kFirstCount;
        p.told_line = first_line();
        p.rx_epoch = epoch_bits_of(epoch);
        p.ack_flags = 0;
        p.awaited = kFirstCount;
        p.rx_in_stream = false;
        bells_.open(s);
        Next& next = next_[s];
        next.if_slot = slot_stamp(epoch) | kToggle;
        next.number = first_line();
        next.line = p.rx_lines;
        next.seen = line_stamp(next.number, p.rx_epoch);
        next.news = kNews;
        next.head = kFirstCount;
        found_nothing(s);
        if (is_first_of_both(epoch)) return;
        memory_.post_word(geometry_.ack_flags(s, me_), 0);
        memory_.post_word(geometry_.consumed(s, me_), word_of_count(kFirstCount));
        memory_.post_word(geometry_.position(s, me_), word_of_line(first_line()));
    }
    void open_tx(unsigned s, std::uint32_t epoch) {
        Peer& p = peers_[s];
        p.tail = p.acknowledged = kFirstCount;
        p.tx_stamp = slot_stamp(epoch) | kToggle;
        p.tx_epoch = epoch_bits_of(epoch);
        p.tx_number = first_line() - 1;
        next_line(p);
        p.free_from = first_line();
        p.credit_from = next_[s].head;
        p.tx_open = true;
        posted_[s] = 0;
        if (is_first_of_both(epoch)) return;
        p.tx_clears = kAtOnce;
        bells_.reset(s);
    }
    void close(unsigned s) {
        Peer& p = peers_[s];
        p.tx_open = false;
        p.acknowledged = p.tail - kClosed;  // looks full; tx_room asks tx_open then
    }
    void close_rx(unsigned s) {
        next_[s].if_slot = next_[s].seen = kNoStamp;
        next_[s].news = 0;
        bells_.close(s);
    }

    // ---- Sending
    using Base::is_short, Base::most_short, Base::posted_bytes;
    [[nodiscard, gnu::always_inline]] bool can_join(std::size_t bytes) const {
        return is_short(bytes);
    }
    [[nodiscard, gnu::always_inline]] bool tx_room(unsigned s) {
        return is_idle(s) || seems_to_have_room(peers_[s]) || finds_room(s);
    }
    /// What fits the slot and is answered. Whether it has. Calls nothing.
    [[nodiscard, gnu::always_inline]] bool post_in_slot(unsigned s, Class cls, const void* from,
                                                        std::size_t bytes) {
        Peer& p = peers_[s];
        if (bytes > kHeadBytes || is_sampled(p.tail) || p.tail != p.acknowledged) return false;
        announce_unsampled(s, kWhole, cls, static_cast<std::uint32_t>(bytes), from, bytes);
        bells_.ring(s, peers_[s].tail - kFirstCount);
        return true;
    }
    /// What fits what is left of the line. Whether it has. Calls nothing.
    [[nodiscard, gnu::always_inline]] bool post_in_line(unsigned s, Class cls, const void* from,
                                                        std::size_t bytes) {
        if (bytes > kLineRest) return false;
        Peer& p = peers_[s];
        const bool idle = is_idle(s);
        const auto low = static_cast<std::uint32_t>(bytes);
        const std::uint32_t end = p.tx_words + 1 + (low + 3) / 4;
        if (end > kLineWords || is_sampled(p.tail) || !(idle || seems_to_have_room(p)))
            return false;
        if (idle) p.free_from = p.tx_number;
        const std::size_t at = word_in(p.tx_line, p.tx_words);
        const std::uint32_t head = next_header(s, kWhole, cls, low);
        memory_.write(at, &head, sizeof head);
        // No more than that, which compilers would not see everywhere.
        memory_.write(at + rmem::kWordBytes, from, bytes < kLineRest ? bytes : kLineRest);
        post_last(s, idle, closes(idle, p.tx_words, end), end);
        p.tx_span = 1;
        bells_.ring(s, peers_[s].tail - kFirstCount);
        return true;
    }
    /// What is short and has room. Whether it has.
    [[nodiscard, gnu::always_inline]] bool post_at_once(unsigned s, Class cls, const void* from,
                                                        std::size_t bytes) {
        return post_in_slot(s, cls, from, bytes) || post_in_line(s, cls, from, bytes) ||
               post_in_lines(s, cls, from, bytes);
    }
    /// What fits neither. Whether it is short and has room.
    [[nodiscard, gnu::always_inline]] bool post_in_lines(unsigned s, Class cls, const void* from,
                                                         std::size_t bytes) {
        if (is_sampled(peers_[s].tail) || !is_short(bytes) ||
            !(is_idle(s) || seems_to_have_room(peers_[s])))
            return false;
        post_lines(s, next_header(s, kWhole, cls, static_cast<std::uint32_t>(bytes)), from, bytes);
        return true;
    }
    [[gnu::always_inline]] void post_inline(unsigned s, Class cls, const void* from,
                                            std::size_t bytes) {
        if (bytes <= kHeadBytes && is_idle(s)) [[likely]] {
            announce(s, kWhole, cls, static_cast<std::uint32_t>(bytes), from, bytes);
        } else {
            post_lines(s, next_header(s, kWhole, cls, static_cast<std::uint32_t>(bytes)), from,
                       bytes);
        }
    }
    /// The same of two pieces.
    [[gnu::always_inline]] void post_joined(unsigned s, Class cls, std::span<const std::byte> head,
                                            std::span<const std::byte> body) {
        const std::size_t bytes = head.size() + body.size();
        if constexpr (!M::kReplicated) {
            if (bytes <= kHeadBytes && is_idle(s)) [[likely]] {
                std::byte* const to = memory_.own(peers_[s].tx_slot + rmem::kWordBytes);
                rmem::copy_words(to, head.data(), head.size());
                rmem::copy_short(to + head.size(), body.data(), body.size());
                return announce(s, kWhole, cls, static_cast<std::uint32_t>(bytes), nullptr, 0);
            }
        }
        post_both(s, cls, head, body);
    }
    void describe(unsigned buffer, const Descriptor& d) {
        const std::array<std::uint32_t, Descriptor::kWords> words{d.place_word(), d.length, 0};
        memory_.write(geometry_.descriptor(me_, buffer), words.data(), sizeof words);
        described_class_ = d.cls;
    }
    void post(unsigned s, unsigned buffer) {
        posted_[s] ^= bit(buffer);
        if (is_idle(s)) return announce(s, kOnBoard, described_class_, buffer, nullptr, 0);
        post_lines(s, next_header(s, kOnBoard, described_class_, buffer), nullptr, 0);
    }
    void post_alone(unsigned s, unsigned buffer, const Descriptor& d) {
        const std::array<std::uint32_t, kDescribed> words{d.place_word(), d.length};
        posted_[s] ^= bit(buffer);
        if (!is_idle(s))
            return post_lines(s, next_header(s, kInSlot, d.cls, buffer), words.data(),
                              sizeof words);
        announce(s, kInSlot, d.cls, buffer, words.data(), sizeof words);
    }
    bool may_describe() const { return true; }
    bool is_acknowledged(unsigned s, unsigned buffer) const {
        return ((posted_[s] ^ memory_.load(geometry_.ack_flags(me_, s))) & bit(buffer)) == 0;
    }
    std::uint32_t busy() const {
        std::uint32_t busy = 0;
        for (unsigned s = 0; s < peers_.size(); ++s) {
            if (!peers_[s].tx_open) continue;
            busy |= posted_[s] ^ memory_.load(geometry_.ack_flags(me_, s));
        }
        return busy;
    }

    // ---- Receiving
    bool has_next(unsigned s) const { return has(next_[s]); }
    /// Spins until something of s is there, at most `polls` polls.
    [[nodiscard]] bool await_next(unsigned s, unsigned polls) {
        const Next next = next_[s];
        if (is_sampled(next.head)) [[unlikely]]
            return false;  // the longer way reads the clock first
        // A poll takes the line from its writer, who has owned it since the message before. Where
        // several messages were there without waiting, their sender is at work on the next one.
        Peer& p = peers_[s];
        const bool in_lines = position_of(next) != p.awaited_in;
        const bool in_stream = next.head - p.awaited > 1 || (in_lines && p.rx_in_stream);
        const unsigned pauses =
            in_stream ? kTuned.pauses_in_stream * std::min(p.rx_span, kTuned.most_taken)
            : in_lines && p.waited > kTuned.near_pauses ? kTuned.pauses_in_lines
                                                        : 1;
        const Ahead ahead = in_stream || !in_lines ? Ahead{} : ahead_of(p);
        bool came = false;
        unsigned done = 0;
        for (; done < polls && !came; ++done) {
            for (unsigned i = 0; i < pauses; ++i) rmem::cpu_relax();
            came = has(next);
            fetch(next, p, ahead);
        }
        p.waited = done * pauses;
        p.awaited = next.head;
        p.awaited_in = position_of(next);
        found_nothing(s);
        return came;
    }
    /// For the samples of propagation: only what was awaited when it came is one.
    void wait_begins() {
        if (waiting_since_ns_ == 0) waiting_since_ns_ = memory_.now_ns();
    }
    void wait_ends() { waiting_since_ns_ = 0; }

    bool peek(unsigned s, Arrival& a) {
        Next& next = next_[s];
        Seen seen;
        if (!look(next, seen)) return false;
        if (seen.in_slot) {
            a.place = kSlotPlace;
            sample(next.head, next.slot, seen.word);
            credit(peers_[s], next.head, seen.word >> kCountShift);
            read_slot(s, next, seen.word, a);
            return true;
        }
        a.place = kLinePlace;
        if constexpr (kAtOnce) {
            credit(peers_[s], next.head, seen.word >> kCountShift);
            next.after = this->read_whole(s, next, seen.word, a) * kLineWords;
            return true;
        }
        Body body;
        if (!find_body(next, peers_[s], seen.word, body)) return false;
        next.after = words_until_next(body);
        a.corrupt = body.is_corrupt;
        if (a.corrupt) return true;
        sample(next.head, body.line, body.word);
        credit(peers_[s], next.head, body.header >> kHeaderCountShift);
        read_lines(s, body, a);
        return true;
    }
    void take(unsigned s, const Arrival& a) {
        if (a.place == kSlotPlace)
            take_slot(s);
        else
            take_lines(s, next_[s].after);
    }

    /// `peek`, copying and `take` in one, for the most common case: a message of this class that
    /// is short and fits. Returns its length; kOther: something else is there; kLonger: the longer
    /// way takes it, which is so every now and then: when it is time to tell the sender, or for a
    /// sample.
    static constexpr int kInLines = -4, kNothing = -3, kOther = -2, kLonger = -1;
    /// kInLines: receive_lines() takes it. Calls nothing.
    [[nodiscard, gnu::always_inline]] int receive_at_once(unsigned s, Class cls, void* buf,
                                                          std::size_t cap) {
        Next& next = next_[s];
        Peer& p = peers_[s];
        const std::uint32_t flag = memory_.load(next.slot);
        if (is_sampled(next.head) || next.head + 1 - p.told >= kTellEvery) [[unlikely]]
            return kLonger;
        if ((flag & kStampMask) == next.if_slot) [[likely]] {
            const std::uint32_t bytes = (flag & kDetailsMask) - details(kWhole, cls, 0);  // or huge
            if (bytes > kHeadBytes || bytes > cap) [[unlikely]]
                return kOther;
            rmem::copy_short(buf, memory_.data(next.slot + rmem::kWordBytes, bytes), bytes);
            RMEM_MARK("receive.inline-copied");
            credit(p, next.head, flag >> kCountShift);
            next.if_slot ^= kToggle;
            count_taken(s);
            return static_cast<int>(bytes);
        }
        const std::uint32_t word = memory_.load(next.line);
        if (!is_news(next, word)) return kNothing;
        // What is in the slot was posted before, and is seen to be there by now.
        if ((memory_.load(next.slot) & kStampMask) == next.if_slot) [[unlikely]]
            return kLonger;
        if constexpr (kAtOnce) {
            const int length = this->receive_line(next, p, word, cls, buf, cap);
            if (length >= 0) count_taken(s);
            return length;
        }
        const std::uint32_t offset = next.seen & kLineMask, there = word & kLineWords;
        if (there <= offset) [[unlikely]]
            return kLonger;
        const std::uint32_t header = memory_.load(word_in(next.line, offset));
        const std::uint32_t bytes = (header & kHeaderMask) - header_of(kWhole, cls, 0);  // or huge
        if (bytes > most_bytes_ || bytes > cap) [[unlikely]]
            return kOther;
        const std::uint32_t end = offset + 1 + (bytes + 3) / 4;
        if (there < end) return there == kLineWords ? kInLines : kLonger;
        const bool is_last = (word & kLineMask) == (kClosedLine | end);
        if (is_last && next.number + 1 - p.told_line >= lines_ / 4) [[unlikely]]
            return kLonger;
        rmem::copy_short(buf, memory_.data(word_in(next.line, offset + 1), bytes), bytes);
        RMEM_MARK("receive.inline-copied");
        credit(p, next.head, header >> kHeaderCountShift);
        p.rx_span = 1;
        p.rx_in_stream = (header & kInStream) != 0;
        if (is_last) {
            begin_line(next, p);
            fetch_burst(next, p, p.rx_in_stream);
        } else {
            next.seen += end - offset;
        }
        count_taken(s);
        return static_cast<int>(bytes);
    }
    /// The same, and leaves no message that is so.
    [[nodiscard, gnu::always_inline]] int receive_head(unsigned s, Class cls, void* buf,
                                                       std::size_t cap) {
        const int bytes = receive_at_once(s, cls, buf, cap);
        if (bytes >= kLonger) return bytes == kLonger ? receive_longer(s, cls, buf, cap) : bytes;
        if constexpr (!kAtOnce) {
            if (bytes == kInLines) return receive_lines(s, cls, buf, cap);
        }
        if (bytes == kOther) [[unlikely]]
            fetch_buffer(s, next_[s]);
        return bytes;
    }
    /// A message of which the header and the first line are there.
    [[nodiscard, gnu::noinline]] int receive_lines(unsigned s, Class cls, void* buf,
                                                   std::size_t cap) {
        Next& next = next_[s];
        Peer& p = peers_[s];
        Body b;
        b.header = memory_.load(word_in(next.line, next.seen & kLineMask));
        b.bytes = (b.header & kHeaderMask) - header_of(kWhole, cls, 0);  // or huge
        if (b.bytes > most_bytes_ || b.bytes > cap) [[unlikely]]
            return kOther;
        b.begin_in(next);
        if (!copy_body(p, b, buf)) return kLonger;
        RMEM_MARK("receive.inline-copied");
        credit(p, next.head, b.header >> kHeaderCountShift);
        p.rx_span = b.last - b.number + 1;
        p.rx_in_stream = (b.header & kInStream) != 0;
        go_behind(next, p, b);
        if (p.rx_span <= kTuned.most_in_burst) fetch_burst(next, p, p.rx_in_stream);
        if (p.rx_in_stream) keep_apart(next, p);
        taken_in_lines(s);
        return static_cast<int>(b.bytes);
    }
    using Base::expect_answer, Base::expect_more, Base::found_nothing;
    void acknowledge(unsigned s, unsigned buffer) {
        Peer& p = peers_[s];
        p.ack_flags ^= bit(buffer);
        RMEM_MARK("acknowledge.before");
        memory_.write_lazy(geometry_.ack_flags(s, me_), p.ack_flags);
        RMEM_MARK("acknowledge.before-wake");
        memory_.notify(s);
    }
    void tell(unsigned s) {
        Peer& p = peers_[s];
        p.told = next_[s].head;
        p.told_line = next_[s].number;
        RMEM_MARK("tell.before");
        memory_.write_lazy(geometry_.position(s, me_), word_of_line(p.told_line));
        memory_.write_lazy(geometry_.consumed(s, me_), word_of_count(p.told));
        if constexpr (rmem::CommitsOnWait<M>) memory_.commit_on_wait();  // its sender may be full
        RMEM_MARK("tell.before-wake");
        memory_.notify(s);
    }
    /// Returns false only if there is no message.
    bool may_have_any() const { return bells_.are_used() ? bells_.have_rung() : find(0) >= 0; }
    [[gnu::always_inline]] int find(unsigned first) const {
        if (bells_.are_used()) [[unlikely]]
            return bells_.find(first, [this](unsigned s) { return has_next(s); });
        // Read once: nothing is read before the flags that is written after them.
        const Next* const next = next_.data();
        const auto ranks = static_cast<unsigned>(peers_.size());
        for (unsigned s = first; s < ranks; ++s) {
            if (has(next[s])) return static_cast<int>(s);
        }
        for (unsigned s = 0; s < first; ++s) {
            if (has(next[s])) return static_cast<int>(s);
        }
        return -1;
    }

private:
    [[gnu::always_inline]] void take_slot(unsigned s) {
        Next& next = next_[s];
        next.if_slot ^= kToggle;
        taken(s);
    }
    /// `words`: before the next message, counted from the line of this one.
    [[gnu::always_inline]] void take_lines(unsigned s, std::uint32_t words) {
        Next& next = next_[s];
        advance(next, peers_[s], words);
        taken_in_lines(s);
    }
    [[gnu::always_inline]] void taken_in_lines(unsigned s) {
        taken(s);
        if (next_[s].number - peers_[s].told_line >= lines_ / 4) [[unlikely]]
            tell(s);
    }
    [[gnu::always_inline]] void count_taken(unsigned s) {
        ++next_[s].head;
        RMEM_CHECK_IF(rmem::is_simulated<M>, next_[s].head - peers_[s].told <= kMaxUnread);
        bells_.taken(s);
    }
    [[gnu::always_inline]] void taken(unsigned s) {
        count_taken(s);
        if (next_[s].head - peers_[s].told >= kTellEvery) [[unlikely]]
            tell(s);
    }
    void sample(std::uint32_t count, std::size_t at, std::uint32_t word) {
        if (is_sampled(count)) [[unlikely]]
            sample(at, word);
    }
    [[gnu::noinline]] void sample(std::size_t at, std::uint32_t word) {
        if (waiting_since_ns_ != 0) memory_.seen(at, word, waiting_since_ns_);
        wait_ends();
    }

    // ---- Posting
    [[gnu::always_inline]] void announce_unsampled(unsigned s, Kind kind, Class cls,
                                                   std::uint32_t low, const void* from,
                                                   std::size_t bytes) {
        Peer& p = peers_[s];
        if (bytes != 0 && !kAtOnce) memory_.write(p.tx_slot + rmem::kWordBytes, from, bytes);
        const std::uint32_t taken = next_[s].head;
        const std::uint32_t flag =
            p.tx_stamp | ((taken & kCountMask) << kCountShift) | details(kind, cls, low);
        p.tx_stamp ^= kToggle;
        p.told = taken;
        RMEM_MARK("post.slot-written");
        if constexpr (kAtOnce) {
            std::array<std::uint32_t, 1 + kHeadBytes / rmem::kWordBytes> words{flag};
            rmem::copy_short(&words[1], from, std::min(bytes, kHeadBytes));
            memory_.post(p.tx_slot, words.data(), 1 + (bytes + 3) / rmem::kWordBytes);
        } else {
            memory_.post_word(p.tx_slot, flag);
        }
        ++p.tail;
    }
    void announce(unsigned s, Kind kind, Class cls, std::uint32_t low, const void* from,
                  std::size_t bytes) {
        Peer& p = peers_[s];
        if (is_sampled(p.tail)) [[unlikely]] {
            const std::uint32_t count = (next_[s].head & kCountMask) << kCountShift;
            memory_.stamp(p.tx_slot, p.tx_stamp | count | details(kind, cls, low));
        }
        announce_unsampled(s, kind, cls, low, from, bytes);
        bells_.ring(s, peers_[s].tail - kFirstCount);
    }
    [[gnu::noinline]] void post_lines(unsigned s, std::uint32_t header, const void* payload,
                                      std::size_t bytes) {
        Peer& p = peers_[s];
        const bool idle = is_idle(s);
        // Closed: the peer has gone since its room was looked at, and nobody reads the lines.
        RMEM_CHECK_IF(rmem::is_simulated<M>,
                      p.tx_line != 0 && (!p.tx_open || seems_to_have_room(p) || idle));
        if (idle) p.free_from = p.tx_number;
        if constexpr (kAtOnce) {
            p.told = next_[s].head;
            p.tx_span = this->post_whole(p, header, payload, bytes);
            ++p.tail;
            return;
        }
        memory_.write(word_in(p.tx_line, p.tx_words), &header, sizeof header);
        const auto* from = static_cast<const std::byte*>(payload);
        const std::uint32_t begin = p.tx_words + 1;
        std::uint32_t end = begin + static_cast<std::uint32_t>((bytes + 3) / rmem::kWordBytes);
        std::uint32_t lines = 0;
        if (end <= kLineWords) {
            if (bytes != 0) memory_.write(word_in(p.tx_line, begin), from, bytes);
        } else {
            lines = write_lines(p, begin, end, from, bytes);
            end -= lines * kLineWords;
        }
        const bool is_last = lines == 0 ? closes(idle, begin - 1, end) : closes(idle, end);
        if (is_sampled(p.tail)) [[unlikely]]
            memory_.stamp(p.tx_line, last_word(p, is_last, end));
        post_last(s, idle, is_last, end);
        p.tx_span = lines + 1;
        // In a stream the next messages are written before their lines could come.
        const std::uint32_t taken = idle || lines == 0 ? 0 : lines + 1;
        for (std::uint32_t i = 0; i < taken; ++i) take_ahead(p, most_ahead_ + i);
        bells_.ring(s, peers_[s].tail - kFirstCount);
    }
    /// Posts the message's last line, of which `end` words are there now.
    [[gnu::always_inline]] void post_last(unsigned s, bool idle, bool is_last, std::uint32_t end) {
        Peer& p = peers_[s];
        p.told = next_[s].head;
        RMEM_MARK("post.slot-written");
        memory_.post_word(p.tx_line, last_word(p, is_last, end));
        ++p.tail;
        p.tx_words = end;
        if (!is_last) return;
        next_line(p);
        if (!idle) take_ahead(p, kTuned.lines_ahead);
    }
    [[gnu::noinline]] void post_both(unsigned s, Class cls, std::span<const std::byte> head,
                                     std::span<const std::byte> body) {
        std::copy(body.begin(), body.end(), std::copy(head.begin(), head.end(), joined_.begin()));
        post_inline(s, cls, joined_.data(), head.size() + body.size());
    }

    // ---- Reading
    [[gnu::noinline]] int receive_longer(unsigned s, Class cls, void* buf, std::size_t cap) {
        Arrival a;
        if (!peek(s, a) || a.corrupt || !a.is_inline || a.cls != cls || a.length > cap)
            return kLonger;
        rmem::copy_bytes(buf, a.payload, a.length);
        RMEM_MARK("receive.inline-copied");
        take(s, a);
        return static_cast<int>(a.length);
    }
    unsigned me_;
    Bells<M> bells_;
    Class described_class_ = Class::user;
    std::int64_t waiting_since_ns_ = 0;  ///< 0: not
    std::vector<std::uint32_t> posted_;  ///< MESSAGE toggles of the own buffers, per receiver
};

}  // namespace billboard::lines

namespace billboard {

template <class M>
using LineBoard = lines::LineBoardOf<M, rmem::PostsWhole<M>>;
/// Messages in pieces, whatever the memory: of simulated programs, as in a bank that ranks share.
template <class M>
using PieceBoard = lines::LineBoardOf<M, false>;

}  // namespace billboard
