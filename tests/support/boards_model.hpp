// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Some ranks' posting boards over plain memory, and a model of the right behaviour: a queue per
/// pair of ranks. `Walk` makes random steps on them.
/// Thread safety: one thread. Errors: std::logic_error after the first wrong step.

#include "billboard/boards/line_board.hpp"
#include "billboard/boards/paper_board.hpp"
#include "tests/support/plain_memory.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace billboard::test {

using rmem::test::PlainBanks;
using rmem::test::PlainMemory;
using rmem::test::Seen;

inline constexpr std::size_t kBufferBytes = kMinDataBytes / kBuffers;

/// Thrown, not expected: after the first wrong step the others say nothing.
inline void require(bool right, const char* what) {
    if (!right) throw std::logic_error(what);
}

template <template <class> class BoardOf, bool Replicated>
struct Kind {
    using Memory = PlainMemory<Replicated>;
    using Board = BoardOf<Memory>;
    static constexpr bool kIsInline = Board::kInlineBytes != 0;
    /// Messages that wait for their receiver, at most.
    static constexpr unsigned kSlots = Board::kMaxUnread;
    /// Messages for which there is room when all before were taken, and no answer came.
    static constexpr unsigned kCertain = kIsInline ? 12 : kBuffers;
    static constexpr Layout kLayout = kIsInline ? Layout::lines : Layout::paper;
    static constexpr std::size_t kMaxBytes = kIsInline ? kMaxLineBytes : kInlineBytes;
    static constexpr const char* kName = !kIsInline    ? Replicated ? "paper_replicated" : "paper"
                                         : !Replicated ? "inline"
                                         : Board::kHasShortCalls ? "inline_in_pieces"
                                                                 : "inline_replicated";
};

inline Geometry geometry_of(Layout layout, unsigned ranks) {
    rmem::RingConfig config;
    config.ranks = config.nodes = ranks;
    config.user_bytes = 0;
    return {config, {layout, kMinDataBytes}};
}

/// The boards of some ranks, and the expected messages. Each call checks what it sees.
template <class K>
class Ranks {
public:
    using Board = typename K::Board;
    using Bits = std::uint32_t;  // of ranks, or of buffers

    explicit Ranks(unsigned ranks, Seen seen = Seen::at_once)
        : ranks_(ranks),
          seen_(seen),
          geometry_(geometry_of(K::kLayout, ranks)),
          banks_(ranks, geometry_.region_bytes(), seen),
          incarnation_(ranks, 1),
          pairs_(std::size_t{ranks} * ranks),
          owed_(ranks) {
        for (unsigned r = 0; r < ranks; ++r) {
            memories_.push_back(std::make_unique<typename K::Memory>(banks_, r));
            boards_.push_back(std::make_unique<Board>(*memories_[r], geometry_, r));
        }
        for (unsigned r = 0; r < ranks; ++r) {
            for (unsigned s = 0; s < ranks; ++s) open_rx(r, s);
        }
        banks_.deliver_all();
        for (unsigned r = 0; r < ranks; ++r) {
            for (unsigned s = 0; s < ranks; ++s) open_tx(r, s);
        }
    }

    unsigned ranks() const { return ranks_; }
    PlainBanks& banks() { return banks_; }
    const Geometry& geometry() const { return geometry_; }
    Board& board(unsigned r) { return *boards_[r]; }
    std::size_t waiting(unsigned from, unsigned to) { return pair(from, to).sent.size(); }
    bool tx_open(unsigned from, unsigned to) { return pair(from, to).tx_open; }
    unsigned last_place() const { return last_place_; }

    /// Asks whether there is room and checks the answer.
    bool room(unsigned from, unsigned to) {
        const bool saw_all = sees_all(from, to);
        banks_.deliver_between_loads(true);
        const bool room = board(from).tx_room(to);
        banks_.deliver_between_loads(false);
        const Pair& p = pair(from, to);
        require(!room || p.tx_open, "there is no room at who has not opened");
        if (!K::kIsInline || !p.tx_open) return room;
        require(!room || p.sent.size() < K::kSlots, "there is no room beyond the last slot");
        // A receiver that has taken this number has told, without being asked.
        require(room || !saw_all || !p.sent.empty(),
                "there is room after the receiver has taken what it was sent");
        return room;
    }

    bool post_inline(unsigned from, unsigned to, std::size_t bytes, Class cls = Class::user) {
        if constexpr (!K::kIsInline) {
            return post_alone(from, to, bytes, cls);
        } else {
            if (!room(from, to)) return false;
            const Payload payload = payload_of(++id_);
            bool is_posted = false;
            if constexpr (Board::kHasShortCalls)
                is_posted =
                    id_ % 2 == 0 && board(from).post_at_once(to, cls, payload.data(), bytes);
            if (!is_posted) board(from).post_inline(to, cls, payload.data(), bytes);
            pair(from, to).sent.push_back({id_, bytes, cls, true, 0});
            return true;
        }
    }
    bool post_alone(unsigned from, unsigned to, std::size_t bytes, Class cls = Class::user) {
        if (!room(from, to)) return false;
        const auto buffer = fill_buffer(from, bytes);
        if (!buffer) return false;
        board(from).post_alone(to, *buffer, descriptor(*buffer, length_of(bytes), cls));
        sent(from, to, *buffer, bytes, cls);
        return true;
    }
    bool multicast(unsigned from, Bits to, std::size_t bytes, Class cls = Class::user) {
        for (unsigned r = 0; r < ranks_; ++r) {
            if ((to >> r) % 2 != 0 && !room(from, r)) return false;
        }
        const auto buffer = fill_buffer(from, bytes);
        if (!buffer) return false;
        board(from).describe(*buffer, descriptor(*buffer, length_of(bytes), cls));
        for (unsigned r = 0; r < ranks_; ++r) {
            if ((to >> r) % 2 == 0) continue;
            board(from).post(r, *buffer);
            sent(from, r, *buffer, bytes, cls);
        }
        return true;
    }

    /// Looks, compares, leaves it where it is. The way `has_next` and `find` see it is compared,
    /// too.
    bool look(unsigned to, unsigned from, Arrival& a) {
        const Pair& p = pair(from, to);
        const bool has = board(to).has_next(from);
        const bool shows = board(to).peek(from, a);
        // A message in lines is there when its beginning is, and shown when it is there whole.
        const bool is_coming = K::kIsInline && has && !shows && !sees_all(from, to);
        require(shows == has || is_coming, "has_next and peek say the same");
        require(!has || !p.sent.empty(), "nothing is shown that was not sent or was taken");
        require(shows || p.sent.empty() || !sees_all(from, to), "what was sent is shown");
        if (shows) compare(to, from, p.sent.front(), a);
        return shows;
    }
    bool take(unsigned to, unsigned from, bool keeps_buffer = false) {
        Arrival a;
        if (!look(to, from, a)) return false;
        look(to, from, a);  // looking again changes nothing
        last_place_ = a.place;
        board(to).take(from, a);
        taken(to, from, keeps_buffer);
        return true;
    }
    /// As an endpoint receives what is expected most.
    bool receive_head(unsigned to, unsigned from, Class cls, std::size_t cap) {
        if constexpr (!K::kIsInline) {
            return take(to, from);
        } else {
            Pair& p = pair(from, to);
            Payload buf;
            const bool had = board(to).has_next(from) && sees_all(from, to);
            int length = -1;
            if (cap % 2 == 0) length = board(to).receive_at_once(from, cls, buf.data(), cap);
            if (length < 0) length = board(to).receive_head(from, cls, buf.data(), cap);
            if (length < 0) {
                const bool fits = had && p.sent.front().is_inline && p.sent.front().cls == cls &&
                                  p.sent.front().bytes <= cap;
                require(!fits, "what is whole, of that class and fits is received");
                return false;
            }
            require(!p.sent.empty() && p.sent.front().is_inline && p.sent.front().cls == cls,
                    "only what was asked for is received");
            require(static_cast<std::size_t>(length) == p.sent.front().bytes, "it has its length");
            require_payload(p.sent.front(), buf.data());
            taken(to, from, false);
            return true;
        }
    }
    void acknowledge_kept(unsigned to) {
        for (unsigned from = 0; from < ranks_; ++from) {
            for (const unsigned buffer : pair(from, to).kept) give_back(to, from, buffer);
            pair(from, to).kept.clear();
        }
    }
    void check_find(unsigned to, unsigned first) {
        const int found = board(to).find(first);
        require(found < static_cast<int>(ranks_), "who is found is a rank");
        require(found < 0 || board(to).has_next(static_cast<unsigned>(found)),
                "something of who is found is there");
        if (seen_ != Seen::at_once) return;
        for (unsigned i = 0; i < ranks_; ++i) {
            const unsigned s = (first + i) % ranks_;
            if (pair(s, to).sent.empty()) continue;
            require(found == static_cast<int>(s), "the first in rank order is found");
            return;
        }
        require(found < 0, "nobody is found where nothing was sent");
    }
    Bits check_busy(unsigned from) {
        const Bits busy = board(from).busy();
        Bits expected = 0;
        bool exactly = true;
        for (unsigned i = 0; i < kBuffers; ++i)
            expected |= (owed_[from][i] != 0 ? Bits{1} : 0) << i;
        for (unsigned to = 0; to < ranks_; ++to) exactly = exactly && sees_all(from, to);
        require((expected & ~busy) == 0, "what a receiver may still read is busy");
        require(!exactly || busy == expected, "what all have acknowledged is free");
        return busy;
    }

    /// The rank dies and comes back. Sending between it and the others opens later.
    void restart(unsigned rank) {
        banks_.deliver_all();
        for (unsigned r = 0; r < ranks_; ++r) acknowledge_kept(r);
        banks_.deliver_all();
        for (unsigned r = 0; r < ranks_; ++r) {
            if (r == rank) continue;
            end(r, rank);
            while (take(r, rank)) {
            }
            require(waiting(rank, r) == 0, "all that the former incarnation sent is shown");
            board(r).close_rx(rank);
            if constexpr (K::kIsInline) {  // what the others take for dead may live
                for (unsigned more = 2; more > 0 && board(rank).tx_room(r); --more)
                    board(rank).post_inline(r, Class::user, nullptr, 0);
                banks_.deliver_all();
            }
            Arrival a;
            require(!board(r).peek(rank, a) && !board(r).has_next(rank), "closed shows nothing");
        }
        owed_[rank].fill(0);
        for (unsigned r = 0; r < ranks_; ++r) pair(rank, r) = pair(r, rank) = {};
        boards_[rank] = std::make_unique<Board>(*memories_[rank], geometry_, rank);
        for (unsigned r = 0; K::kIsInline && r < ranks_; ++r)
            require(!board(rank).has_next(r), "what has not opened shows nothing");
        // As often as a flag's bits of the epoch are those of a former incarnation.
        incarnation_[rank] += jumps_ ? 256 : 1;
        jumps_ = !jumps_;
        for (unsigned r = 0; r < ranks_; ++r) {
            const std::uint32_t epoch = incarnation_[rank] + incarnation_[r];
            board(rank).clear(r, epoch);
            if (r != rank) board(r).clear(rank, epoch);
        }
        banks_.deliver_all();
        for (unsigned r = 0; r < ranks_; ++r) {
            const std::uint32_t epoch = incarnation_[rank] + incarnation_[r];
            require(board(rank).is_clear(r, epoch) && board(r).is_clear(rank, epoch),
                    "what was cleared is");
            open_rx(rank, r);
            if (r != rank) open_rx(r, rank);
        }
        banks_.deliver_all();
        open_tx(rank, rank);
    }
    void open_tx(unsigned from, unsigned to) {
        board(from).open_tx(to, incarnation_[from] + incarnation_[to]);
        pair(from, to).tx_open = true;
    }
    /// `rank` is gone as `r` sees it; its messages stay to be taken.
    void end(unsigned r, unsigned rank) {
        board(r).close(rank);
        pair(r, rank).tx_open = false;
        for (Bits& of : owed_[r]) of &= ~(Bits{1} << rank);
        check_busy(r);
    }
    void drain() {
        for (unsigned to = 0; to < ranks_; ++to) {
            for (unsigned from = 0; from < ranks_; ++from) {
                while (take(to, from)) {
                }
            }
            acknowledge_kept(to);
        }
    }

private:
    using Payload = std::array<std::byte, K::kMaxBytes + 4>;
    struct Sent {
        std::uint32_t id;
        std::size_t bytes;
        Class cls;
        bool is_inline;
        unsigned buffer;
    };
    struct Pair {
        std::deque<Sent> sent;
        std::vector<unsigned> kept;  ///< taken by `to`, not yet acknowledged
        bool tx_open = false;
    };

    Pair& pair(unsigned from, unsigned to) { return pairs_[std::size_t{from} * ranks_ + to]; }
    bool sees_all(unsigned a, unsigned b) {
        return seen_ == Seen::at_once || a == b || banks_.all_seen(a, b);
    }
    void open_rx(unsigned to, unsigned from) {
        board(to).open_rx(from, incarnation_[to] + incarnation_[from]);
    }

    static Payload payload_of(std::uint32_t id) {
        Payload payload;
        for (std::uint32_t i = 0; i < payload.size() / 4; ++i) {
            const std::uint32_t word = (id + i * 0x01000193) * 0x9e3779b1;
            std::memcpy(payload.data() + 4 * std::size_t{i}, &word, sizeof word);
        }
        return payload;
    }
    static void require_payload(const Sent& sent, const std::byte* bytes) {
        require(std::memcmp(bytes, payload_of(sent.id).data(), sent.bytes) == 0,
                "the payload is the one that was sent");
    }
    static std::size_t length_of(std::size_t bytes) { return std::min(bytes, kBufferBytes); }
    static Descriptor descriptor(unsigned buffer, std::size_t bytes, Class cls) {
        return {buffer * kBufferBytes, static_cast<std::uint32_t>(bytes), 0, cls, Part::whole};
    }
    std::optional<unsigned> fill_buffer(unsigned from, std::size_t bytes) {
        const Bits busy = check_busy(from);
        if (busy == ~Bits{0} || !board(from).may_describe()) return std::nullopt;
        const auto buffer = static_cast<unsigned>(std::countr_one(busy));
        const Payload payload = payload_of(++id_);
        memories_[from]->write(geometry_.data(from) + buffer * kBufferBytes, payload.data(),
                               length_of(bytes));
        return buffer;
    }
    void sent(unsigned from, unsigned to, unsigned buffer, std::size_t bytes, Class cls) {
        pair(from, to).sent.push_back({id_, length_of(bytes), cls, false, buffer});
        owed_[from][buffer] |= Bits{1} << to;
    }
    void compare(unsigned to, unsigned from, const Sent& sent, const Arrival& a) {
        require(!a.corrupt, "nothing is corrupt");
        require(a.length == sent.bytes && a.cls == sent.cls, "length and class are those sent");
        require(a.is_inline == sent.is_inline && (a.is_inline || a.buffer == sent.buffer),
                "it came the way it was sent");
        require_payload(
            sent, a.is_inline
                      ? a.payload
                      : memories_[to]->data(geometry_.data(from) + a.descriptor.offset, a.length));
    }
    void taken(unsigned to, unsigned from, bool keeps_buffer) {
        Pair& p = pair(from, to);
        const Sent sent = p.sent.front();
        p.sent.pop_front();
        if (sent.is_inline) return;
        if (keeps_buffer) {
            p.kept.push_back(sent.buffer);
        } else {
            give_back(to, from, sent.buffer);
        }
    }
    void give_back(unsigned to, unsigned from, unsigned buffer) {
        board(to).acknowledge(from, buffer);
        owed_[from][buffer] &= ~(Bits{1} << to);
    }

    unsigned ranks_;
    Seen seen_;
    Geometry geometry_;
    PlainBanks banks_;
    std::vector<std::unique_ptr<typename K::Memory>> memories_;
    std::vector<std::unique_ptr<Board>> boards_;
    std::vector<std::uint32_t> incarnation_;
    bool jumps_ = true;
    std::vector<Pair> pairs_;
    std::vector<std::array<Bits, kBuffers>>
        owed_;  ///< [from][buffer]: ranks that may still read it
    std::uint32_t id_ = 0;
    unsigned last_place_ = 0;
};

/// Random steps. Every few thousand of them each pair gets other habits: silent, slow or eager.
template <class K>
class Walk {
public:
    Walk(unsigned ranks, Seen seen, std::uint32_t seed)
        : all_(ranks, seen), seen_(seen), rng_(seed) {
        habits_.resize(std::size_t{ranks} * ranks);
    }
    Ranks<K>& all() { return all_; }

    void run(unsigned steps, unsigned steps_per_incarnation) {
        for (unsigned i = 0; i < steps; ++i) {
            if (i % 4096 == 0) change_habits();
            if (i % steps_per_incarnation == steps_per_incarnation - 1)
                all_.restart(one_of(all_.ranks()));
            step();
            if (seen_ == Seen::when_delivered) deliver_some();
        }
        settle();
    }

private:
    struct Habits {
        unsigned sends = 0, receives = 0, delivers = 0;  ///< in 256
    };

    unsigned one_of(unsigned n) { return static_cast<unsigned>(rng_() % n); }
    bool one_in(unsigned n) { return rng_() % n == 0; }
    bool at_times(unsigned in_256) { return rng_() % 256 < in_256; }

    void change_habits() {
        constexpr std::array<unsigned, 6> kRates{0, 0, 2, 30, 128, 256};
        for (Habits& h : habits_) {
            h = {kRates[one_of(6)], kRates[one_of(6)], kRates[1 + one_of(5)]};
        }
    }
    void step() {
        const unsigned a = one_of(all_.ranks()), b = one_of(all_.ranks());
        const Habits& h = habits_[std::size_t{a} * all_.ranks() + b];
        if (!all_.tx_open(a, b) && one_in(64)) all_.open_tx(a, b);
        if (at_times(h.sends)) send(a, b);
        if (at_times(h.receives)) receive(b, a);
        if (one_in(16)) look(a, b);
    }
    void send(unsigned from, unsigned to) {
        const Class cls = one_in(4) ? Class::mpi : Class::user;
        unsigned bytes = one_in(4) ? one_of(kInlineBytes + 1) : one_of(kHeadBytes + 1);
        if (K::kIsInline && one_in(8)) {
            const auto most = static_cast<unsigned>(all_.geometry().most_line_bytes());
            bytes = one_of(std::min(one_in(4) ? most : 200U, most) + 1);
        }
        switch (one_of(8)) {
            case 0: all_.post_alone(from, to, bytes, cls); break;
            case 1: all_.multicast(from, one_of((1U << all_.ranks()) - 1) + 1, bytes, cls); break;
            default:
                for (unsigned burst = one_in(8) ? one_of(12) : 1; burst > 0; --burst) {
                    all_.post_inline(from, to, bytes, cls);
                }
        }
    }
    void receive(unsigned to, unsigned from) {
        switch (one_of(4)) {
            case 0: all_.take(to, from, one_in(8)); break;
            case 1:
                for (unsigned burst = one_of(12); burst > 0; --burst) all_.take(to, from);
                break;
            default:
                if (!all_.receive_head(to, from, one_in(8) ? Class::mpi : Class::user,
                                       one_in(8) ? one_of(kHeadBytes) : unsigned{K::kMaxBytes})) {
                    all_.take(to, from);
                }
        }
    }
    void look(unsigned a, unsigned b) {
        Arrival arrival;
        switch (one_of(7)) {
            case 0: all_.room(a, b); break;
            case 1: all_.board(a).tell(b); break;
            case 2: all_.check_find(a, b); break;
            case 3: all_.check_busy(a); break;
            case 4: all_.acknowledge_kept(a); break;
            case 5: all_.look(a, b, arrival); break;
            default: static_cast<void>(all_.board(a).await_next(b, 1));
        }
    }
    void deliver_some() {
        const unsigned a = one_of(all_.ranks()), b = one_of(all_.ranks());
        const Habits& h = habits_[std::size_t{a} * all_.ranks() + b];
        if (a == b || !at_times(h.delivers)) return;
        all_.banks().deliver(a, b, one_in(8) ? 200 : one_of(12));
    }
    /// At last everything can be taken, and there is room for all that can be.
    void settle() {
        all_.banks().deliver_all();
        all_.drain();
        all_.banks().deliver_all();
        for (unsigned a = 0; a < all_.ranks(); ++a) {
            for (unsigned b = 0; b < all_.ranks(); ++b) {
                require(all_.waiting(a, b) == 0, "nothing is left");
                require(all_.room(a, b) == all_.tx_open(a, b), "there is room where it is open");
            }
            require(all_.check_busy(a) == 0, "no buffer is busy");
        }
    }

    Ranks<K> all_;
    Seen seen_;
    std::mt19937 rng_;
    std::vector<Habits> habits_;
};

}  // namespace billboard::test
