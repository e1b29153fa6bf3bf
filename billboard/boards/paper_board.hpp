// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The `paper` posting board: descriptor, data, MESSAGE flag and ACK flag, each in its place.
///
/// To announce buffer i to r, s writes the descriptor in its own control partition and toggles bit
/// i of its word among r's MESSAGE flags. r compares that word with the value it stored: changed
/// bits are new messages. r reads descriptor and data from s's partition and toggles bit i of its
/// word among s's ACK flags. A buffer is free when, for every receiver, both bits agree again.
///
/// Order       several bits may change between two looks; the descriptor's sequence number, which
///             counts the sender's posts, orders them. Numbers are compared by difference; a sender
///             does not post while a buffer 2^30 posts old is unread, so they never go ambiguous.
/// Invariants  one writer per word; a sender keeps its flag words privately and never reads them
///             back. A message that was found is taken once.
/// Thread safety: one thread. Progress: wait-free, bounded by the number of ranks and buffers.
/// Source: section 3 of the paper; the sequence number is our addition (bits alone have no order).

#include "billboard/boards/arrival.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/link/memory.hpp"

#include <array>
#include <bit>
#include <vector>

namespace billboard {

template <class M>
class PaperBoard {
    static_assert(rmem::Memory<M>);

public:
    static constexpr std::size_t kInlineBytes = 0;
    static constexpr bool kFollows = false;  ///< a message may be there in part
    static constexpr bool kFills = false;
    static constexpr bool kHasShortCalls = false;
    static constexpr unsigned kMaxUnread = kBuffers;

    PaperBoard(M& memory, const Geometry& geometry, unsigned me)
        : memory_(memory), geometry_(geometry), me_(me), peers_(geometry.ranks()) {}

    // ---- Connection
    static void clear(unsigned, std::uint32_t) {}
    static bool is_clear(unsigned, std::uint32_t) { return true; }
    void open_rx(unsigned s, std::uint32_t epoch) {
        Peer& p = peers_[s];
        p.count = p.first = 0;
        p.rx_open = true;
        // s posts nothing until it sees our confirmation: the present value of the word is the base
        // line.
        p.seen = p.ack_flags = memory_.load(geometry_.message_flags(me_, s));
        if (!is_first_of_both(epoch)) memory_.post_word(geometry_.ack_flags(s, me_), p.ack_flags);
    }
    void open_tx(unsigned s, std::uint32_t) {
        peers_[s].posted = memory_.load(geometry_.ack_flags(me_, s));
        peers_[s].tx_open = true;
    }
    void close(unsigned s) { peers_[s].tx_open = false; }
    void close_rx(unsigned s) {
        peers_[s].rx_open = false;
        peers_[s].count = 0;
    }

    // ---- Sending
    static constexpr bool is_short(std::size_t) { return false; }
    static constexpr std::size_t most_short() { return 0; }
    static constexpr std::size_t posted_bytes(std::size_t bytes) { return bytes; }
    bool tx_room(unsigned s) const { return peers_[s].tx_open; }
    void post_inline(unsigned, Class, const void*, std::size_t) {}
    void describe(unsigned buffer, const Descriptor& d) {
        sequence_of_[buffer] = ++sequence_;
        const std::array<std::uint32_t, Descriptor::kWords> words{d.place_word(), d.length,
                                                                  sequence_};
        memory_.write(geometry_.descriptor(me_, buffer), words.data(), sizeof words);
    }
    void post(unsigned s, unsigned buffer) {
        peers_[s].posted ^= bit(buffer);
        memory_.post_word(geometry_.message_flags(s, me_), peers_[s].posted);
    }
    void post_alone(unsigned s, unsigned buffer, const Descriptor& d) {
        describe(buffer, d);
        RMEM_MARK("post.described");
        post(s, buffer);
    }
    [[nodiscard]] bool may_describe() {
        if (sequence_ - oldest_ < kMaxAge) [[likely]]
            return true;
        oldest_ = sequence_;
        for (std::uint32_t left = busy(); left != 0; left &= left - 1) {
            const std::uint32_t of = sequence_of_[static_cast<unsigned>(std::countr_zero(left))];
            if (sequence_ - of > sequence_ - oldest_) oldest_ = of;
        }
        return sequence_ - oldest_ < kMaxAge;
    }
    bool is_acknowledged(unsigned s, unsigned buffer) const {
        return ((peers_[s].posted ^ memory_.load(geometry_.ack_flags(me_, s))) & bit(buffer)) == 0;
    }
    std::uint32_t busy() const {
        std::uint32_t busy = 0;
        for (unsigned s = 0; s < peers_.size(); ++s) {
            if (!peers_[s].tx_open) continue;
            busy |= peers_[s].posted ^ memory_.load(geometry_.ack_flags(me_, s));
        }
        return busy;
    }

    // ---- Receiving
    void wait_begins() {}  // no samples here
    void wait_ends() {}
    bool await_next(unsigned s, unsigned polls) const {
        for (; polls > 0; --polls) {
            rmem::cpu_relax();
            if (has_next(s)) return true;
        }
        return false;
    }
    bool has_next(unsigned s) const {
        const Peer& p = peers_[s];
        return p.rx_open &&
               (p.count != 0 || memory_.load(geometry_.message_flags(me_, s)) != p.seen);
    }
    bool peek(unsigned s, Arrival& a) {
        Peer& p = peers_[s];
        if (!p.rx_open || (p.count == 0 && !collect(s))) return false;
        a = p.waiting[p.first];
        return true;
    }
    void take(unsigned s, const Arrival&) {
        RMEM_CHECK_IF(rmem::is_simulated<M>, peers_[s].count != 0);
        ++peers_[s].first;
        --peers_[s].count;
    }
    void acknowledge(unsigned s, unsigned buffer) {
        peers_[s].ack_flags ^= bit(buffer);
        RMEM_MARK("acknowledge.before");
        memory_.post_word(geometry_.ack_flags(s, me_), peers_[s].ack_flags);
        RMEM_MARK("acknowledge.before-wake");
        memory_.notify(s);
    }
    void tell(unsigned) {}
    bool may_have_any() const { return find(0) >= 0; }
    int find(unsigned first) const {
        const auto ranks = static_cast<unsigned>(peers_.size());
        unsigned s = first;
        for (unsigned i = 0; i < ranks; ++i) {
            if (has_next(s)) return static_cast<int>(s);
            if (++s == ranks) s = 0;
        }
        return -1;
    }

private:
    static constexpr std::uint32_t kMaxAge = std::uint32_t{1} << 30;
    static constexpr std::uint32_t bit(unsigned i) { return std::uint32_t{1} << i; }

    struct Peer {
        std::uint32_t seen = 0;       ///< s's MESSAGE flags as last looked at
        std::uint32_t ack_flags = 0;  ///< as written to s's partition
        std::uint32_t posted = 0;     ///< the own MESSAGE flags at s
        bool rx_open = false;
        bool tx_open = false;
        unsigned first = 0, count = 0;            ///< of waiting
        std::array<Arrival, kBuffers> waiting{};  ///< found, in the sender's order
    };

    /// Sorts what has changed into `waiting`. Later changes are later messages, so an old batch is
    /// used up before the next is looked for.
    bool collect(unsigned s) {
        Peer& p = peers_[s];
        const std::uint32_t flags = memory_.load(geometry_.message_flags(me_, s));
        std::uint32_t fresh = flags ^ p.seen;
        if (fresh == 0) return false;
        p.seen = flags;
        p.first = p.count = 0;
        for (; fresh != 0; fresh &= fresh - 1) {
            insert(p, read(s, static_cast<unsigned>(std::countr_zero(fresh))));
        }
        return true;
    }
    static void insert(Peer& p, const Arrival& a) {
        unsigned at = p.count++;
        for (; at > 0; --at) {
            const std::uint32_t before = p.waiting[at - 1].descriptor.sequence;
            if (static_cast<std::int32_t>(a.descriptor.sequence - before) > 0) break;
            p.waiting[at] = p.waiting[at - 1];
        }
        p.waiting[at] = a;
    }
    Arrival read(unsigned s, unsigned buffer) const {
        const std::size_t at = geometry_.descriptor(s, buffer);
        Arrival a;
        a.buffer = buffer;
        a.descriptor =
            Descriptor::from_words(memory_.load(at), memory_.load(at + 4), memory_.load(at + 8));
        a.cls = a.descriptor.cls;
        a.length = a.descriptor.length;
        a.corrupt = a.descriptor.offset > geometry_.data_bytes() ||
                    a.length > geometry_.data_bytes() - a.descriptor.offset;
        return a;
    }

    M& memory_;
    const Geometry& geometry_;
    unsigned me_;
    std::uint32_t sequence_ = kFirstCount;
    std::uint32_t oldest_ = kFirstCount;
    std::array<std::uint32_t, kBuffers> sequence_of_{};
    std::vector<Peer> peers_;
};

}  // namespace billboard
