// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The `inline` posting board: per pair of ranks and direction a FIFO of eight slots, or of 24
/// where answers take long.
///
/// A slot is half a cache line, a flag word and 28 bytes; the other half is the same slot of the
/// other direction. A message of up to 28 bytes lies there whole, so that it costs one cache-line
/// transfer; up to 60 bytes it goes on in the slot's tail. A longer one is announced by its
/// descriptor, either in the slot (one receiver) or in s's descriptor table (multicast on
/// replicated links, where the payload should travel once).
///
/// Place       a message goes into the slot after the one before it, but into the first slot when
///             all before it are known to be taken. So two ranks that answer each other stay on one
///             line, which goes to and fro whole, and a receiver looks at two slots.
/// Flag word   sequence:6 | toggle:1 | count:4 | epoch:8 | class:4 | kind:3 | length or buffer:6
///   A slot is new when its toggle has changed; sequence and epoch are then the ones expected next.
///   The epoch is that of the two ranks' incarnations together, so a former incarnation's message
///   is never taken for new. The count is of the messages that its sender has taken from the
///   receiver.
/// Room        a rank that answers tells in each answer, for nothing, how much it has taken. A
///             receiver that only receives writes its count to a word each kTellEvery messages; a
///             sender reads that word, and its unread messages, only when the FIFO looks full.
///             Telling more often costs cache-line transfers, and is not needed: a full FIFO holds
///             more than kTellEvery messages not yet taken. The count of a flag word has too few
///             bits for the long FIFO: there the word alone tells, and rides on what else its
///             writer sends.
/// Bells       with more than 16 ranks on one bank the sender also adds to a dense word per pair,
///             so that a receiver of BBP_ANY looks at few lines.
///
/// Invariants: tail - consumed <= kSlots; one writer per word. Thread safety: one thread.
/// Progress: every call is wait-free; the loops are bounded by the number of ranks.
/// Source: the MESSAGE flag and descriptor of the paper, put into one line.

#include "billboard/boards/arrival.hpp"
#include "billboard/boards/bell_scan.hpp"
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
#include <type_traits>
#include <vector>

namespace billboard {

template <class M>
class InlineBoard {
    static_assert(rmem::Memory<M>);

public:
    static constexpr std::size_t kInlineBytes = billboard::kInlineBytes;
    static constexpr bool kFollows = false;          ///< a message may be there in part
    static constexpr bool kFills = !M::kReplicated;  ///< large messages are posted before filled
    static constexpr bool kPostsWhole = rmem::PostsWhole<M>;
    static constexpr unsigned kSlots = M::kFar ? kFarSlots : kNearSlots;
    static constexpr unsigned kMostUnread = kSlots;
    static constexpr std::uint32_t kTellEvery = kSlots / 2;

    InlineBoard(M& memory, const Geometry& geometry, unsigned me)
        : memory_(memory),
          geometry_(geometry),
          me_(me),
          rings_bells_(!M::kReplicated && geometry.ranks() > kBellRanks),
          next_(geometry.ranks()),
          peers_(geometry.ranks()),
          heads_((geometry.ranks() + kScanBlock - 1) / kScanBlock * kScanBlock, 0),
          posted_(geometry.ranks(), 0) {
        for (unsigned s = 0; s < geometry.ranks(); ++s) {
            peers_[s].rx_slots = geometry.slots(me, s);
            peers_[s].tx_slots = geometry.slots(s, me);
            peers_[s].rx_tails = geometry.tails(me, s);
            peers_[s].tx_tails = geometry.tails(s, me);
            peers_[s].rx_count = geometry.consumed(me, s);
        }
    }

    // ---- Connection
    void open_rx(unsigned s, std::uint32_t epoch) {
        Peer& p = peers_[s];
        p.told = p.credit_from = kFirstCount;
        heads_[s] = 0;
        const std::uint32_t first = stamp(kFirstCount, epoch & kEpochMask);
        next_[s] = {p.rx_slots,  p.rx_slots,  first | kToggle, first | kToggle,
                    kFirstCount, kAllToggles, kSlots - 1};
        p.ack_flags = 0;
        if (is_first_of_both(epoch)) return;
        memory_.post_word(geometry_.ack_flags(s, me_), 0);
        memory_.post_word(geometry_.consumed(s, me_), word_of_count(kFirstCount));
    }
    void open_tx(unsigned s, std::uint32_t epoch) {
        Peer& p = peers_[s];
        p.tail = p.acknowledged = kFirstCount;
        p.tx_toggles = 0;
        p.tx_stamp = stamp(kFirstCount, epoch & kEpochMask);
        p.credit_from = next_[s].head;
        p.tx_open = true;
        posted_[s] = 0;
        if (is_first_of_both(epoch)) return;
        for (unsigned i = 0; i < kSlots; ++i) {
            memory_.post_word(p.tx_slots + i * rmem::kLineBytes, 0);
        }
        if (rings_bells_) memory_.post_word(geometry_.bell(s, me_), 0);
    }
    void close(unsigned s) {
        Peer& p = peers_[s];
        p.tx_open = false;
        p.acknowledged = p.tail - kClosed;  // looks full; tx_room asks tx_open then
    }
    void close_rx(unsigned s) {
        next_[s].if_first = next_[s].if_next = kNoStamp;
        if (rings_bells_)
            heads_[s] = memory_.load(geometry_.bell(me_, s));  // a dead peer may owe one
    }

    // ---- Sending
    [[nodiscard]] static constexpr bool is_short(std::size_t bytes) {
        return bytes <= kInlineBytes;
    }
    static constexpr std::size_t most_short() { return kInlineBytes; }
    static constexpr std::size_t posted_bytes(std::size_t) { return rmem::kLineBytes; }
    [[nodiscard]] static constexpr bool can_join(std::size_t bytes) { return bytes <= kHeadBytes; }
    [[nodiscard, gnu::always_inline]] bool tx_room(unsigned s) {
        const Peer& p = peers_[s];
        return p.tail - p.acknowledged < kSlots || finds_room(s);
    }
    [[gnu::always_inline]] void post_inline(unsigned s, Class cls, const void* from,
                                            std::size_t bytes) {
        const std::size_t slot = next_slot(s);
        std::size_t head = bytes;
        if (bytes > kHeadBytes) [[unlikely]] {
            write_tail(s, static_cast<const std::byte*>(from) + kHeadBytes, bytes - kHeadBytes);
            head = kHeadBytes;
        }
        if (head != 0 && !kPostsWhole) memory_.write(slot + rmem::kWordBytes, from, head);
        announce(s, slot, kWhole, cls, static_cast<std::uint32_t>(bytes), from, head);
        if (bytes > kHeadBytes) [[unlikely]]
            memory_.expect_read(tail_of(peers_[s].tx_tails, peers_[s].tx_place),
                                bytes - kHeadBytes);
    }
    /// The same of two pieces, of kHeadBytes together.
    [[gnu::always_inline]] void post_joined(unsigned s, Class cls, std::span<const std::byte> head,
                                            std::span<const std::byte> body) {
        static_assert(!kPostsWhole);
        const std::size_t slot = next_slot(s), bytes = head.size() + body.size();
        std::byte* const to = memory_.own(slot + rmem::kWordBytes);
        rmem::copy_words(to, head.data(), head.size());
        rmem::copy_short(to + head.size(), body.data(), body.size());
        announce(s, slot, kWhole, cls, static_cast<std::uint32_t>(bytes), nullptr, bytes);
    }
    void describe(unsigned buffer, const Descriptor& d) {
        const std::array<std::uint32_t, Descriptor::kWords> words{d.place_word(), d.length, 0};
        memory_.write(geometry_.descriptor(me_, buffer), words.data(), sizeof words);
        described_class_ = d.cls;
    }
    void post(unsigned s, unsigned buffer) {
        posted_[s] ^= bit(buffer);
        announce(s, next_slot(s), kOnBoard, described_class_, buffer, nullptr, 0);
    }
    void post_alone(unsigned s, unsigned buffer, const Descriptor& d) {
        const std::array<std::uint32_t, Descriptor::kWords> words{d.place_word(), d.length, 0};
        const std::size_t slot = next_slot(s);
        if (!kPostsWhole) memory_.write(slot + rmem::kWordBytes, words.data(), sizeof words);
        posted_[s] ^= bit(buffer);
        announce(s, slot, kInSlot, d.cls, buffer, words.data(), sizeof words);
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
        for (; polls > 0; --polls) {
            rmem::cpu_relax();
            if (has(next)) return true;
        }
        return false;
    }
    /// For the samples of propagation: only what was awaited when it came is one.
    void wait_begins() {
        if (waiting_since_ns_ == 0) waiting_since_ns_ = memory_.now_ns();
    }
    void wait_ends() { waiting_since_ns_ = 0; }

    bool peek(unsigned s, Arrival& a) {
        Seen seen;
        if (!look(s, seen)) return false;
        a.place = seen.place;
        credit(peers_[s], next_[s].head, seen.flag);
        read(s, seen.slot, seen.flag, a);
        if (a.is_inline && a.length > kHeadBytes) [[unlikely]]
            join_tail(s, a);
        return true;
    }
    void take(unsigned s, const Arrival& a) { take(s, a.place); }

    /// `peek`, copying and `take` in one, for the most common case: a message of this class that
    /// lies whole in its slot and fits. Returns its length; -1: something else is there, or
    /// nothing.
    [[nodiscard, gnu::always_inline]] int receive_head(unsigned s, Class cls, void* buf,
                                                       std::size_t cap) {
        Seen seen;
        if (!look(s, seen)) return -1;
        const std::uint32_t length =
            (seen.flag & kDetailsMask) - details(kWhole, cls, 0);  // or huge
        if (length > kHeadBytes || length > cap) [[unlikely]] {
            fetch_payload(s, seen);
            return -1;
        }
        rmem::copy_short(buf, memory_.data(seen.slot + rmem::kWordBytes, length), length);
        RMEM_MARK("receive.inline-copied");
        credit(peers_[s], next_[s].head, seen.flag);
        take(s, seen.place);
        return static_cast<int>(length);
    }
    /// Sends for the line that an answer to s is written to, while the caller works on it: s has
    /// read that line since.
    void expect_answer(unsigned s) const {
        if constexpr (M::kReplicated) return;  // nobody else has the bank's lines
        const Peer& p = peers_[s];
        const unsigned place = p.tail == p.acknowledged ? 0 : following(p.tx_place);
        rmem::take_line(memory_.own(slot_of(p.tx_slots, place)));
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
        const std::uint32_t head = next_[s].head;
        peers_[s].told = head;
        RMEM_MARK("tell.before");
        memory_.write_lazy(geometry_.consumed(s, me_), word_of_count(head));
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
    static constexpr unsigned kEpochShift = 13, kCountShift = 21, kSequenceShift = 26;
    static constexpr std::uint32_t kDetailsMask = (1U << kEpochShift) - 1;
    static constexpr std::uint32_t kEpochMask = 0xff;
    static constexpr std::uint32_t kCountMask = 0xf;
    static constexpr std::uint32_t kToggle = 1U << 25;
    static constexpr std::uint32_t kNextInSequence = 1U << kSequenceShift;
    static constexpr std::uint32_t kStampMask = ~(kDetailsMask | (kCountMask << kCountShift));
    static constexpr std::uint32_t kNoStamp = 1;       // of no flag
    static constexpr std::size_t kFetchedBytes = 256;  // the rest comes by its order of reading
    /// Not acknowledged while posting is closed: so many that no counts of the peer make room.
    static constexpr std::uint32_t kClosed = 0x80000000;
    /// Whether the counts of flag words tell an empty FIFO from a full one.
    static constexpr bool kCounts = kCountMask > kSlots;
    using Toggles =
        std::conditional_t<(kSlots > 16), std::uint32_t, std::uint16_t>;  ///< of all slots
    static constexpr Toggles kAllToggles = static_cast<Toggles>(~Toggles{0});
    enum Kind : std::uint32_t { kWhole = 0, kInSlot = 1, kOnBoard = 2 };

    /// Where s's next message may be, and the stamp that its flag word will have there. Dense,
    /// since BBP_ANY looks at all of them.
    struct Next {
        std::size_t first = 0, next = 0;  ///< the first slot, and the one after the last
        std::uint32_t if_first = kNoStamp, if_next = kNoStamp;
        std::uint32_t head = kFirstCount;  ///< messages taken from s
        Toggles toggles = 0;               ///< as they will be next
        std::uint16_t place = 0;           ///< slot of the message taken last
    };
    struct alignas(rmem::kLineBytes) Peer {
        std::size_t rx_slots = 0, rx_tails = 0;
        std::uint32_t told = kFirstCount;  ///< Next::head as s knows it
        std::uint32_t ack_flags = 0;       ///< as written to s's partition
        std::uint32_t tail = kFirstCount;  ///< posted to s
        std::uint32_t acknowledged = kFirstCount - kClosed;
        std::uint32_t credit_from = kFirstCount;  ///< first message of s whose count is still news
        std::uint32_t tx_stamp = 0;               ///< of the next message, without its toggle
        std::uint16_t tx_place = 0;               ///< slot of the message posted last
        Toggles tx_toggles = 0;                   ///< as posted last
        std::size_t tx_slots = 0, tx_tails = 0;
        std::size_t rx_count = 0;  ///< where s tells what it has consumed
        bool tx_open = false;
    };

    /// A new flag word, and where it was found.
    struct Seen {
        std::size_t slot;
        std::uint32_t flag;
        unsigned place;
    };
    [[gnu::always_inline]] bool look(unsigned s, Seen& seen) {
        const Next& next = next_[s];
        seen = {next.first, memory_.load(next.first), 0};
        if ((seen.flag & kStampMask) != next.if_first) {
            seen = {next.next, memory_.load(next.next), following(next.place)};
            if ((seen.flag & kStampMask) != next.if_next) return false;
        }
        if (is_sampled(next.head)) [[unlikely]]
            sample(seen.slot, seen.flag);
        return true;
    }
    bool has(const Next& next) const {
        const bool at_first = (memory_.load(next.first) & kStampMask) == next.if_first;
        const bool at_next = (memory_.load(next.next) & kStampMask) == next.if_next;
        return static_cast<unsigned>(at_first) | static_cast<unsigned>(at_next);  // one branch
    }
    [[gnu::always_inline]] void take(unsigned s, unsigned place) {
        Next& next = next_[s];
        const unsigned toggles = next.toggles ^ (1U << place), after = following(place);
        const std::uint32_t stamp =
            ((place == 0 ? next.if_first : next.if_next) & ~kToggle) + kNextInSequence;
        next.next = slot_of(next.first, after);
        next.if_first = stamp | toggle_of(toggles, 0);
        next.if_next = stamp | toggle_of(toggles, after);
        next.toggles = static_cast<Toggles>(toggles);
        next.place = static_cast<std::uint16_t>(place);
        ++next.head;
        RMEM_CHECK_IF(rmem::is_simulated<M>, next.head - peers_[s].told <= kSlots);
        if (rings_bells_) ++heads_[s];
        if (next.head - peers_[s].told >= kTellEvery) [[unlikely]]
            tell(s);
    }
    static constexpr bool is_sampled(std::uint32_t count) {
        return !M::kReplicated && count % rmem::kStampEvery == 0;
    }
    [[gnu::noinline]] void sample(std::size_t slot, std::uint32_t flag) {
        if (waiting_since_ns_ != 0) memory_.seen(slot, flag, waiting_since_ns_);
        wait_ends();
    }

    /// Whether a FIFO that looked full, or is closed, has room.
    [[nodiscard, gnu::noinline]] bool finds_room(unsigned s) {
        Peer& p = peers_[s];
        if (!p.tx_open) return false;
        look_for_room(s);
        return p.tail - p.acknowledged < kSlots;
    }
    /// The counts that s has told by messages not received yet, and by its word. The word is read
    /// first: then all that is not there yet was posted after it, and counts at least as much.
    void look_for_room(unsigned s) {
        Peer& p = peers_[s];
        const std::uint32_t told = count_of_word(memory_.load(p.rx_count));
        if constexpr (kCounts) look_at_counts(s);
        // Anything else is not a count that s can have told, or an old one.
        if (p.tail - told < p.tail - p.acknowledged) p.acknowledged = told;
    }
    void look_at_counts(unsigned s) {
        Peer& p = peers_[s];
        const Next& next = next_[s];
        const bool restarts = (memory_.load(next.first) & kStampMask) == next.if_first;
        unsigned place = restarts ? 0 : following(next.place);
        std::uint32_t stamp = next.if_first & ~kToggle, number = next.head;
        for (; number - next.head < kSlots; ++number) {
            const std::uint32_t flag = memory_.load(slot_of(next.first, place));
            if ((flag & kStampMask) != (stamp | toggle_of(next.toggles, place))) break;
            credit(p, number, flag);
            stamp += kNextInSequence;
            place = following(place);
        }
    }
    /// Takes s's count out of its message of this number. A count has few bits, so it must not be
    /// older than the known one; each message's is not older than that of the one before.
    static void credit(Peer& p, std::uint32_t number, std::uint32_t flag) {
        if constexpr (!kCounts) return;
        if (static_cast<std::int32_t>(number - p.credit_from) < 0) return;
        p.credit_from = number + 1;
        const std::uint32_t more = ((flag >> kCountShift) - p.acknowledged) & kCountMask;
        if (more <= p.tail - p.acknowledged) p.acknowledged += more;
    }

    static constexpr std::uint32_t bit(unsigned i) { return std::uint32_t{1} << i; }
    static constexpr std::uint32_t stamp(std::uint32_t count, std::uint32_t epoch) {
        return ((count + 1) << kSequenceShift) | (epoch << kEpochShift);
    }
    static constexpr std::uint32_t toggle_of(unsigned toggles, unsigned place) {
        return (toggles >> place) % 2 * kToggle;
    }
    static constexpr unsigned following(unsigned place) { return (place + 1) % kSlots; }
    static constexpr std::uint32_t details(Kind kind, Class cls, std::uint32_t low) {
        return (static_cast<std::uint32_t>(cls) << 9) | (kind << 6) | low;
    }
    static constexpr std::size_t slot_of(std::size_t slots, unsigned place) {
        return slots + place * rmem::kLineBytes;
    }
    static constexpr std::size_t tail_of(std::size_t tails, unsigned place) {
        return tails + place * (rmem::kLineBytes / 2);
    }
    /// Chooses the place of the next message to s.
    [[gnu::always_inline]] std::size_t next_slot(unsigned s) {
        Peer& p = peers_[s];
        // Closed: the peer has gone since its room was looked at, and nobody reads the slot.
        RMEM_CHECK_IF(rmem::is_simulated<M>, !p.tx_open || p.tail - p.acknowledged < kSlots);
        const unsigned place = p.tail == p.acknowledged ? 0 : following(p.tx_place);
        p.tx_place = static_cast<std::uint16_t>(place);
        return slot_of(p.tx_slots, place);
    }

    /// `from`, `bytes`: the slot's bytes after the flag; they are there already, unless
    /// kPostsWhole.
    [[gnu::always_inline]] void announce(unsigned s, std::size_t slot, Kind kind, Class cls,
                                         std::uint32_t low, const void* from, std::size_t bytes) {
        Peer& p = peers_[s];
        const std::uint32_t taken = next_[s].head;
        const unsigned toggles = p.tx_toggles ^ (1U << p.tx_place);
        const std::uint32_t flag = p.tx_stamp | toggle_of(toggles, p.tx_place) |
                                   ((taken & kCountMask) << kCountShift) | details(kind, cls, low);
        p.tx_toggles = static_cast<Toggles>(toggles);
        p.tx_stamp += kNextInSequence;
        if constexpr (kCounts) p.told = taken;
        RMEM_MARK("post.slot-written");
        if (is_sampled(p.tail)) [[unlikely]]
            memory_.stamp(slot, flag);
        if constexpr (kPostsWhole) {
            memory_.post(slot, flag, from, bytes);
        } else {
            memory_.post_word(slot, flag);
        }
        ++p.tail;
        if (!rings_bells_) return;
        RMEM_MARK("post.before-bell");
        memory_.post_word(geometry_.bell(s, me_), p.tail - kFirstCount);
    }

    /// Prefetches the lines outside the slot, to have them when the longer way has come there.
    [[gnu::noinline]] void fetch_payload(unsigned s, const Seen& seen) const {
        if constexpr (M::kReplicated) return;  // nobody else has the bank's lines
        Arrival a;
        read(s, seen.slot, seen.flag, a);
        if (a.corrupt) return;
        const std::byte* at = a.is_inline
                                  ? memory_.data(tail_of(peers_[s].rx_tails, seen.place), 0)
                                  : memory_.data(geometry_.data(s) + a.descriptor.offset, 0);
        const std::byte* end = at + std::min<std::size_t>(a.length, kFetchedBytes);
        for (; at < end; at += rmem::kLineBytes) __builtin_prefetch(at);
    }

    [[gnu::noinline]] void write_tail(unsigned s, const std::byte* from, std::size_t bytes) {
        memory_.write(tail_of(peers_[s].tx_tails, peers_[s].tx_place), from, bytes);
    }
    /// Puts the two places of a payload together.
    void join_tail(unsigned s, Arrival& a) {
        if (a.corrupt) return;
        std::memcpy(joined_.data(), a.payload, kHeadBytes);
        std::memcpy(joined_.data() + kHeadBytes,
                    memory_.data(tail_of(peers_[s].rx_tails, a.place), kInlineBytes - kHeadBytes),
                    kInlineBytes - kHeadBytes);
        a.payload = joined_.data();
    }

    void read(unsigned s, std::size_t slot, std::uint32_t flag, Arrival& a) const {
        const std::uint32_t low = flag & 0x3fU;
        const std::uint32_t kind = (flag >> 6) & 7U;
        a.cls = static_cast<Class>((flag >> 9) & 0xfU);
        a.is_inline = kind == kWhole;
        if (a.is_inline) [[likely]] {
            a.length = low;
            a.payload =
                memory_.data(slot + rmem::kWordBytes, std::min<std::size_t>(low, kHeadBytes));
            a.corrupt = low > kInlineBytes;
            return;
        }
        a.buffer = low;
        a.corrupt = low >= kBuffers || (kind != kInSlot && kind != kOnBoard);
        if (a.corrupt) return;
        const std::size_t at =
            kind == kInSlot ? slot + rmem::kWordBytes : geometry_.descriptor(s, low);
        const Class announced = a.cls;
        a.descriptor = Descriptor::from_words(memory_.load(at), memory_.load(at + 4), 0);
        a.length = a.descriptor.length;
        a.corrupt = a.descriptor.offset > geometry_.data_bytes() ||
                    a.length > geometry_.data_bytes() - a.descriptor.offset ||
                    a.descriptor.cls != announced;
    }

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

    M& memory_;
    const Geometry& geometry_;
    unsigned me_;
    bool rings_bells_;
    Class described_class_ = Class::user;
    std::array<std::byte, kInlineBytes> joined_{};
    std::int64_t waiting_since_ns_ = 0;  ///< 0: not
    std::vector<Next> next_;
    std::vector<Peer> peers_;
    std::vector<std::uint32_t> heads_;   ///< taken from s since it opened, dense as the bells are
    std::vector<std::uint32_t> posted_;  ///< MESSAGE toggles of the own buffers, per receiver
};

}  // namespace billboard
