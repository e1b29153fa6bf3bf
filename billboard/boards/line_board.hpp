// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The `inline` posting board where all ranks share one bank: per pair of ranks and direction a
/// slot for what is answered, and a ring of lines for all else.
///
/// Slot        half a cache line, a flag word and 28 bytes; the other half is the slot of the other
///             direction. A message of up to 28 bytes lies there when all before it are known to be
///             taken. So two ranks that answer each other stay on one line, which goes to and fro.
/// Lines       everything else is a stream of words in lines that follow each other: a header and
///             the payload, in the next lines as far as it does not fit. Each line begins with a
///             word of its own, which tells how much of the line is there: a reader polls one word
///             at a place that it knows, and follows the writer line by line. Nothing but these
///             words ever lies where a line begins, so that old payload is never taken for one.
/// Rhythm      A message that finds all before it taken is followed by an answer, not by another
///             message: it closes its last line, and the next one begins a line of its own, which
///             nobody polls while it is written. In a stream the next message begins behind it.
/// Room        a rank that answers tells in each answer, for nothing, how much it has taken. A
///             receiver that only receives writes what it has taken, messages and lines, to two
///             words each quarter of the lines; a sender reads them, and its unread messages, only
///             when there seems to be no room.
/// Ahead       the sender takes the lines of the message after the next one from the receiver that
///             has read them: not the next one's, which the receiver polls.
/// Bells       with more than 16 ranks the sender also adds to a dense word per pair, so that a
///             receiver of BBP_ANY looks at few lines.
///
/// Invariants: a line is written again only after its reader has told that it has left it; what the
/// slot holds was posted before anything in the lines that is not taken; one writer per word.
/// Thread safety: one thread. Progress: every call is wait-free; loops are bounded by the number of
/// ranks, of messages or of lines. A message whose sender stops in its middle is not there yet.
/// Source: the MESSAGE flag and descriptor of the paper, put beside the message.

#include "billboard/boards/arrival.hpp"
#include "billboard/boards/bell_scan.hpp"
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

namespace billboard {

template <class M>
class LineBoard : private Lines<M> {
    static_assert(rmem::Memory<M>);
    using Base = Lines<M>;
    using Base::memory_, Base::geometry_, Base::lines_, Base::most_bytes_, Base::next_,
        Base::peers_, Base::kCountShift, Base::kDetailsMask, Base::kCountMask, Base::kToggle,
        Base::kHeaderCountShift, Base::kInStream, Base::kHeaderMask, Base::kStampMask,
        Base::kNoStamp, Base::kLineWords, Base::kClosedLine, Base::kLineMask, Base::kNews,
        Base::kLineRest, Base::kDescribed, Base::kPausesInLines, Base::kPausesInStream,
        Base::kSlotPlace, Base::kLinePlace, Base::kClosed, Base::kWhole, Base::kInSlot,
        Base::kOnBoard, Base::look, Base::has, Base::position_of, Base::begin_line, Base::advance,
        Base::credit, Base::bit, Base::slot_stamp, Base::details, Base::header_of, Base::first_line,
        Base::line_stamp, Base::line_of, Base::word_in, Base::read_slot, Base::kind_of,
        Base::low_of, Base::class_of, Base::read_header, Base::find_body, Base::copy_body,
        Base::read_descriptor, Base::read_place, Base::fetch_buffer, Base::is_idle,
        Base::seems_to_have_room, Base::finds_room, Base::closes, Base::last_word, Base::next_line,
        Base::take_ahead;
    using typename Base::Body;
    using typename Base::Kind;
    using typename Base::Next;
    using typename Base::Peer;
    using typename Base::Seen;

public:
    using Base::kMostUnread;
    static constexpr std::size_t kInlineBytes = kMostLineBytes;
    static constexpr bool kFollows = true;           ///< a message may be there in part
    static constexpr bool kFills = !M::kReplicated;  ///< large messages are posted before filled
    static constexpr std::uint32_t kTellEvery = 128;

    LineBoard(M& memory, const Geometry& geometry, unsigned me)
        : Base(memory, geometry),
          me_(me),
          rings_bells_(!M::kReplicated && geometry.ranks() > kBellRanks),
          heads_((geometry.ranks() + kScanBlock - 1) / kScanBlock * kScanBlock, 0),
          posted_(geometry.ranks(), 0) {
        for (unsigned s = 0; s < geometry.ranks(); ++s) {
            Peer& p = peers_[s];
            next_[s].slot = geometry.slots(me, s);
            next_[s].line = p.rx_lines = geometry.lines(me, s);
            p.tx_slot = geometry.slots(s, me);
            p.tx_lines = geometry.lines(s, me);
            p.rx_count = geometry.consumed(me, s);
            p.rx_position = geometry.position(me, s);
        }
    }

    // ---- Connection
    void open_rx(unsigned s, std::uint32_t epoch) {
        Peer& p = peers_[s];
        p.told = p.credit_from = kFirstCount;
        p.told_line = first_line();
        p.rx_epoch = epoch;
        p.ack_flags = 0;
        p.awaited = kFirstCount;
        heads_[s] = 0;
        Next& next = next_[s];
        next.if_slot = slot_stamp(epoch) | kToggle;
        next.number = first_line();
        next.line = p.rx_lines;
        next.seen = line_stamp(next.number, epoch);
        next.news = kNews;
        next.head = kFirstCount;
        memory_.post_word(geometry_.ack_flags(s, me_), 0);
        memory_.post_word(geometry_.consumed(s, me_), kFirstCount);
        memory_.post_word(geometry_.position(s, me_), first_line());
    }
    void open_tx(unsigned s, std::uint32_t epoch) {
        Peer& p = peers_[s];
        memory_.post_word(p.tx_slot, 0);
        if (rings_bells_) memory_.post_word(geometry_.bell(s, me_), 0);
        p.tail = p.acknowledged = kFirstCount;
        p.tx_stamp = slot_stamp(epoch) | kToggle;
        p.tx_epoch = epoch;
        p.tx_number = first_line() - 1;
        next_line(p);
        p.free_from = first_line();
        p.credit_from = next_[s].head;
        p.tx_open = true;
        posted_[s] = 0;
    }
    void close(unsigned s) {
        Peer& p = peers_[s];
        p.tx_open = false;
        p.acknowledged = p.tail - kClosed;  // looks full; tx_room asks tx_open then
    }
    void close_rx(unsigned s) {
        next_[s].if_slot = kNoStamp;
        next_[s].news = 0;
        if (rings_bells_)
            heads_[s] = memory_.load(geometry_.bell(me_, s));  // a dead peer may owe one
    }

    // ---- Sending
    /// Whether a message of this size is posted without a buffer.
    [[nodiscard, gnu::always_inline]] bool is_short(std::size_t bytes) const {
        return bytes <= most_bytes_;
    }
    /// What the link is asked room for: a header, and a word for each line.
    static constexpr std::size_t posted_bytes(std::size_t bytes) {
        return bytes + rmem::kLineBytes + bytes / kLineRest * rmem::kWordBytes;
    }
    /// The same to s, as it is now: in a stream a longer one is copied faster as a whole, to where
    /// its receiver is not looking yet.
    [[nodiscard, gnu::always_inline]] bool is_short_to(unsigned s, std::size_t bytes) const {
        return bytes <= kMostInStream ? is_short(bytes) : is_short(bytes) && is_idle(s);
    }
    [[nodiscard, gnu::always_inline]] bool can_join(std::size_t bytes) const {
        return is_short(bytes);
    }
    [[nodiscard, gnu::always_inline]] bool tx_room(unsigned s) {
        return is_idle(s) || seems_to_have_room(peers_[s]) || finds_room(s);
    }
    /// What fits the slot, or what is left of the line. Whether it has: calls nothing, so that who
    /// posts one message after the other has no stores but the message's waiting for its line.
    [[nodiscard, gnu::always_inline]] bool post_at_once(unsigned s, Class cls, const void* from,
                                                        std::size_t bytes) {
        Peer& p = peers_[s];
        if (is_sampled(p.tail) || rings_bells_) [[unlikely]]
            return false;
        const bool idle = p.tail == p.acknowledged;
        if (idle && bytes <= kHeadBytes) [[likely]] {
            if (bytes != 0) memory_.write(p.tx_slot + rmem::kWordBytes, from, bytes);
            announce_unsampled(s, kWhole, cls, static_cast<std::uint32_t>(bytes));
            return true;
        }
        const auto low = static_cast<std::uint32_t>(bytes);
        const std::uint32_t end = p.tx_words + 1 + (low + 3) / 4;
        if (bytes > kLineRest || end > kLineWords || !(idle || seems_to_have_room(p))) return false;
        if (idle) p.free_from = p.tx_number;
        const std::size_t at = word_in(p.tx_line, p.tx_words);
        const std::uint32_t head = header(s, kWhole, cls, low);
        memory_.write(at, &head, sizeof head);
        memory_.write(at + rmem::kWordBytes, from, bytes);
        post_last(s, idle, end);
        return true;
    }
    [[gnu::always_inline]] void post_inline(unsigned s, Class cls, const void* from,
                                            std::size_t bytes) {
        if (bytes <= kHeadBytes && is_idle(s)) [[likely]] {
            if (bytes != 0) memory_.write(peers_[s].tx_slot + rmem::kWordBytes, from, bytes);
            announce(s, kWhole, cls, static_cast<std::uint32_t>(bytes));
        } else {
            post_lines(s, header(s, kWhole, cls, static_cast<std::uint32_t>(bytes)), from, bytes);
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
                return announce(s, kWhole, cls, static_cast<std::uint32_t>(bytes));
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
        if (is_idle(s)) return announce(s, kOnBoard, described_class_, buffer);
        post_lines(s, header(s, kOnBoard, described_class_, buffer), nullptr, 0);
    }
    void post_alone(unsigned s, unsigned buffer, const Descriptor& d) {
        const std::array<std::uint32_t, kDescribed> words{d.place_word(), d.length};
        posted_[s] ^= bit(buffer);
        if (!is_idle(s))
            return post_lines(s, header(s, kInSlot, d.cls, buffer), words.data(), sizeof words);
        memory_.write(peers_[s].tx_slot + rmem::kWordBytes, words.data(), sizeof words);
        announce(s, kInSlot, d.cls, buffer);
    }
    bool may_describe() const { return true; }
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
        const unsigned pauses = next.head - p.awaited > 1           ? kPausesInStream
                                : position_of(next) != p.awaited_in ? kPausesInLines
                                                                    : 1;
        bool came = false;
        for (; polls > 0 && !came; --polls) {
            for (unsigned i = 0; i < pauses; ++i) rmem::cpu_relax();
            came = has(next);
        }
        p.awaited = next.head;
        p.awaited_in = position_of(next);
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
        Body body;
        if (!find_body(next, peers_[s], seen.word, body)) return false;
        a.place = kLinePlace;
        next.after = body.after;
        a.corrupt = body.is_corrupt;
        if (a.corrupt) return true;
        sample(next.head, body.last_line, body.last_word);
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
    /// is short and fits. Returns its length; -1: something else is there, or nothing.
    [[nodiscard, gnu::always_inline]] int receive_head(unsigned s, Class cls, void* buf,
                                                       std::size_t cap) {
        const Next& next = next_[s];
        const std::uint32_t flag = memory_.load(next.slot);
        if ((flag & kStampMask) != next.if_slot) {
            const std::uint32_t word = memory_.load(next.line);
            if (word - next.seen - 1 >= next.news) return -1;
            return receive_lines(s, word, cls, buf, cap);
        }
        sample(next.head, next.slot, flag);
        const std::uint32_t length = (flag & kDetailsMask) - details(kWhole, cls, 0);  // or huge
        if (length > kHeadBytes || length > cap) [[unlikely]] {
            fetch_buffer(s, next, flag);
            return -1;
        }
        rmem::copy_short(buf, memory_.data(next.slot + rmem::kWordBytes, length), length);
        RMEM_MARK("receive.inline-copied");
        credit(peers_[s], next.head, flag >> kCountShift);
        take_slot(s);
        return static_cast<int>(length);
    }
    /// The same of what lies whole in the slot or the line, without a call. Every now and then that
    /// is left to the longer way: when it is time to tell the sender, or for a sample. kNothing:
    /// nothing is there.
    static constexpr int kNothing = -2;
    [[nodiscard, gnu::always_inline]] int receive_at_once(unsigned s, Class cls, void* buf,
                                                          std::size_t cap) {
        Next& next = next_[s];
        Peer& p = peers_[s];
        const std::uint32_t flag = memory_.load(next.slot);
        if (is_sampled(next.head) || next.head + 1 - p.told >= kTellEvery || rings_bells_)
            [[unlikely]]
            return -1;
        if ((flag & kStampMask) == next.if_slot) [[likely]] {
            const std::uint32_t bytes = (flag & kDetailsMask) - details(kWhole, cls, 0);  // or huge
            if (bytes > kHeadBytes || bytes > cap) [[unlikely]]
                return -1;
            rmem::copy_short(buf, memory_.data(next.slot + rmem::kWordBytes, bytes), bytes);
            RMEM_MARK("receive.inline-copied");
            credit(p, next.head, flag >> kCountShift);
            next.if_slot ^= kToggle;
            ++next.head;
            return static_cast<int>(bytes);
        }
        const std::uint32_t word = memory_.load(next.line);
        if (word - next.seen - 1 >= next.news) return kNothing;
        // What is in the slot was posted before, and is seen to be there by now.
        if ((memory_.load(next.slot) & kStampMask) == next.if_slot) [[unlikely]]
            return -1;
        const std::uint32_t offset = next.seen & kLineMask, there = word & kLineWords;
        if (there <= offset) [[unlikely]]
            return -1;
        const std::uint32_t header = memory_.load(word_in(next.line, offset));
        const std::uint32_t bytes = (header & kHeaderMask) - header_of(kWhole, cls, 0);  // or huge
        if (bytes > kLineRest || bytes > cap) [[unlikely]]
            return -1;
        const std::uint32_t end = offset + 1 + (bytes + 3) / 4;
        const bool is_last = (word & kLineMask) == (kClosedLine | end);
        if (there < end || (is_last && next.number + 1 - p.told_line >= lines_ / 4)) [[unlikely]]
            return -1;
        rmem::copy_short(buf, memory_.data(word_in(next.line, offset + 1), bytes), bytes);
        RMEM_MARK("receive.inline-copied");
        credit(p, next.head, header >> kHeaderCountShift);
        if (is_last) {
            begin_line(next, p);
        } else {
            next.seen += end - offset;
        }
        ++next.head;
        return static_cast<int>(bytes);
    }
    /// Sends for the line that an answer to s is written to, while the caller works on it: s has
    /// read that line since.
    void expect_answer(unsigned s) const {
        if constexpr (!M::kReplicated) rmem::take_line(memory_.own(peers_[s].tx_slot));
    }
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
        memory_.write_lazy(geometry_.position(s, me_), p.told_line);
        memory_.write_lazy(geometry_.consumed(s, me_), p.told);
        if constexpr (rmem::CommitsOnWait<M>) memory_.commit_on_wait();  // its sender may be full
        RMEM_MARK("tell.before-wake");
        memory_.notify(s);
    }
    /// Whether somebody's message may be there. False only if there is none.
    bool may_have_any() const {
        if (!rings_bells_) return find(0) >= 0;
        return any_difference(bells(), heads_.data(), static_cast<unsigned>(heads_.size()));
    }
    [[gnu::always_inline]] int find(unsigned first) const {
        if (rings_bells_) [[unlikely]]
            return find_bell(first);
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
    static constexpr std::size_t kMostInStream = 128;
    [[gnu::always_inline]] void take_slot(unsigned s) {
        Next& next = next_[s];
        next.if_slot ^= kToggle;
        taken(s);
    }
    /// `words`: before the next message, counted from the line of this one.
    [[gnu::always_inline]] void take_lines(unsigned s, std::uint32_t words) {
        Next& next = next_[s];
        advance(next, peers_[s], words);
        taken(s);
        if (next.number - peers_[s].told_line >= lines_ / 4) [[unlikely]]
            tell(s);
    }
    [[gnu::always_inline]] void taken(unsigned s) {
        Next& next = next_[s];
        ++next.head;
        RMEM_CHECK_IF(rmem::is_simulated<M>, next.head - peers_[s].told <= kMostUnread);
        if (rings_bells_) ++heads_[s];
        if (next.head - peers_[s].told >= kTellEvery) [[unlikely]]
            tell(s);
    }
    static constexpr bool is_sampled(std::uint32_t count) {
        return !M::kReplicated && count % rmem::kStampEvery == 0;
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
    std::uint32_t header(unsigned s, Kind kind, Class cls, std::uint32_t low) const {
        return (next_[s].head << kHeaderCountShift) | (is_idle(s) ? 0 : kInStream) |
               header_of(kind, cls, low);
    }
    [[gnu::always_inline]] void announce_unsampled(unsigned s, Kind kind, Class cls,
                                                   std::uint32_t low) {
        Peer& p = peers_[s];
        const std::uint32_t taken = next_[s].head;
        const std::uint32_t flag =
            p.tx_stamp | ((taken & kCountMask) << kCountShift) | details(kind, cls, low);
        p.tx_stamp ^= kToggle;
        p.told = taken;
        RMEM_MARK("post.slot-written");
        memory_.post_word(p.tx_slot, flag);
        ++p.tail;
    }
    void announce(unsigned s, Kind kind, Class cls, std::uint32_t low) {
        Peer& p = peers_[s];
        if (is_sampled(p.tail)) [[unlikely]] {
            const std::uint32_t count = (next_[s].head & kCountMask) << kCountShift;
            memory_.stamp(p.tx_slot, p.tx_stamp | count | details(kind, cls, low));
        }
        announce_unsampled(s, kind, cls, low);
        ring_bell(s);
    }
    void ring_bell(unsigned s) {
        if (!rings_bells_) return;
        RMEM_MARK("post.before-bell");
        memory_.post_word(geometry_.bell(s, me_), peers_[s].tail - kFirstCount);
    }
    [[gnu::noinline]] void post_lines(unsigned s, std::uint32_t header, const void* payload,
                                      std::size_t bytes) {
        Peer& p = peers_[s];
        const bool idle = is_idle(s);
        // Closed: the peer has gone since its room was looked at, and nobody reads the lines.
        RMEM_CHECK_IF(rmem::is_simulated<M>, !p.tx_open || seems_to_have_room(p) || idle);
        const std::uint32_t first = p.tx_number;
        if (idle) p.free_from = first;
        memory_.write(word_in(p.tx_line, p.tx_words), &header, sizeof header);
        ++p.tx_words;
        const auto* from = static_cast<const std::byte*>(payload);
        for (; bytes > (kLineWords - p.tx_words) * rmem::kWordBytes; next_line(p)) {
            const std::size_t here = (kLineWords - p.tx_words) * rmem::kWordBytes;
            if (here == kLineRest) {
                memory_.write(word_in(p.tx_line, 0), from, kLineRest);  // of a known size
            } else if (here != 0) {
                memory_.write(word_in(p.tx_line, p.tx_words), from, here);
            }
            from += here;
            bytes -= here;
            RMEM_MARK("post.line-written");
            memory_.post_word(p.tx_line, p.tx_line_stamp | kClosedLine | kLineWords);
            RMEM_MARK("post.line-posted");
        }
        if (bytes != 0) memory_.write(word_in(p.tx_line, p.tx_words), from, bytes);
        const std::uint32_t lines = p.tx_number - first;
        const auto end = p.tx_words + static_cast<std::uint32_t>((bytes + rmem::kWordBytes - 1) /
                                                                 rmem::kWordBytes);
        if (is_sampled(p.tail)) [[unlikely]]
            memory_.stamp(p.tx_line, last_word(p, idle, end));
        post_last(s, idle, end);
        // In a stream the next message is written before its lines could come.
        for (std::uint32_t i = 2; i <= lines; ++i) take_ahead(p, idle ? i : lines + i);
        ring_bell(s);
    }
    /// Posts the message's last line, of which `end` words are there now.
    [[gnu::always_inline]] void post_last(unsigned s, bool idle, std::uint32_t end) {
        Peer& p = peers_[s];
        p.told = next_[s].head;
        RMEM_MARK("post.slot-written");
        memory_.post_word(p.tx_line, last_word(p, idle, end));
        ++p.tail;
        p.tx_words = end;
        if (!closes(idle, end)) return;
        next_line(p);
        take_ahead(p, 1);
    }
    [[gnu::noinline]] void post_both(unsigned s, Class cls, std::span<const std::byte> head,
                                     std::span<const std::byte> body) {
        std::copy(body.begin(), body.end(), std::copy(head.begin(), head.end(), joined_.begin()));
        post_inline(s, cls, joined_.data(), head.size() + body.size());
    }

    // ---- Reading
    /// `word`: what the line's word is.
    [[gnu::noinline]] int receive_lines(unsigned s, std::uint32_t word, Class cls, void* buf,
                                        std::size_t cap) {
        const Next& next = next_[s];
        Peer& p = peers_[s];
        // What is in the slot was posted before, and is seen to be there by now.
        if ((memory_.load(next.slot) & kStampMask) == next.if_slot) [[unlikely]]
            return -1;
        Body b;
        if (!read_header(next, word, b) || kind_of(b.header) != kWhole ||
            class_of(b.header) != cls || b.bytes > cap || !copy_body(next, p, b, buf))
            return -1;
        RMEM_MARK("receive.inline-copied");
        sample(next.head, b.last_line, b.last_word);
        credit(p, next.head, b.header >> kHeaderCountShift);
        take_lines(s, b.after);
        return static_cast<int>(b.bytes);
    }
    void read_lines(unsigned s, const Body& b, Arrival& a) {
        a.cls = class_of(b.header);
        a.is_inline = kind_of(b.header) == kWhole;
        const Peer& p = peers_[s];
        if (a.is_inline) {
            a.length = b.bytes;
            a.payload = memory_.data(word_in(next_[s].line, b.begin), b.bytes);
            if (b.end <= kLineWords) return;
            Body again = b;  // all of it is there
            a.payload = joined_.data();
            a.corrupt = !copy_body(next_[s], p, again, joined_.data());
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
    // ---- Bells
    int find_bell(unsigned first) const {
        const int s = find_bell(first, static_cast<unsigned>(peers_.size()));
        return s >= 0 ? s : find_bell(0, first);
    }
    /// The first in [from, to) whose bell differs from the taken one.
    int find_bell(unsigned from, unsigned to) const {
        for (unsigned s = from; (s = next_difference(bells(), heads_.data(), s, to)) < to; ++s) {
            if (has_next(s)) return static_cast<int>(s);
        }
        return -1;
    }
    const std::uint32_t* bells() const {
        return reinterpret_cast<const std::uint32_t*>(
            memory_.data(geometry_.bell(me_, 0), peers_.size() * rmem::kWordBytes));
    }

    unsigned me_;
    bool rings_bells_;
    Class described_class_ = Class::user;
    std::int64_t waiting_since_ns_ = 0;  ///< 0: not
    std::vector<std::uint32_t> heads_;   ///< taken from s since it opened, dense as the bells are
    std::vector<std::uint32_t> posted_;  ///< MESSAGE toggles of the own buffers, per receiver
    std::array<std::byte, kMostLineBytes> joined_{};
};

}  // namespace billboard
