// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages larger than a partition, put together from their parts: at most one of each sender at a
/// time, in private memory, or straight in the buffer of a caller that waits for it.
///
/// The first part starts with the message's size. Its sender may take the message back: from a
/// receiver that has not looked yet by a size of 0, else by a part that says so. A part that fits
/// nowhere is dropped and counted.
///
/// A first part may offer the message instead: its bytes are read where they lie (core/far.hpp). It
/// stays on the board until they have come, or cannot be read.
///
/// Invariants
///   (R1) The bytes gathered of a message are not more than its size, and outside a caller's buffer
///        they are what its private memory holds.
///   (R2) A caller's buffer is written to only while a message is gathered into it.
///   (R3) A whole message is set aside, or in the caller's buffer.
/// Asked by Taking for what has come, by Peers when a sender has gone.
/// Thread safety: one thread.

#include "billboard/core/far.hpp"
#include "billboard/core/own_rank.hpp"
#include "billboard/core/set_aside.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/marks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace billboard {

inline constexpr std::size_t kTotalBytes = 8;  ///< the first part of a large message: its size
/// At one sender's messages in one go: all that it can have posted, each seen twice where it ends a
/// message in parts.
template <class Board>
inline constexpr unsigned kMaxLooks = 2 * std::max<unsigned>(kBuffers, Board::kMaxUnread);

template <class Own>
class Reassembly {
public:
    Reassembly(Own& own, SetAside& aside) : own_(own), aside_(aside), of_(own.ranks) {}

    [[nodiscard]] bool any() const noexcept { return gathering_ != 0; }
    [[nodiscard]] bool has(unsigned s) const noexcept { return of_[s].is_on; }
    [[nodiscard]] bool has(unsigned s, Class cls) const noexcept {
        return of_[s].is_on && of_[s].cls == cls;
    }
    /// Whether s's message is on the board until it has been read past the ring.
    [[nodiscard]] bool is_reading(unsigned s) const noexcept { return of_[s].reading != nullptr; }
    [[nodiscard]] std::uint64_t total(unsigned s) const noexcept { return of_[s].total; }
    /// A sender (`src`, or any) of whose message more is to come; -1 if none.
    [[nodiscard]] int find(int src, Class cls) const;

    /// Moves s's next message to private memory. False while it is not whole or there is no room.
    [[nodiscard]] bool set_aside(unsigned s, const Arrival& a);
    /// Takes what has come of s's message: all that is on the board now. A sender that keeps up
    /// with the caller must not keep it from its deadline for the length of the message.
    void gather_from(unsigned s);
    /// The same of all senders. What is whole is set aside then, what was taken back is nowhere.
    void gather_all();
    /// What ends of the reads past the ring; at a sender it lets others read.
    void progress_far();
    /// The rest of s's message will never come.
    void stop(unsigned s);
    /// The same; it counts as dropped, if there is one.
    void drop(unsigned s);

    // ---- Into the buffer of a caller that waits, of total(s) bytes
    void pour_into(unsigned s, std::byte* buffer);
    /// From now on into private memory again. Whether the message has been whole in the buffer.
    [[nodiscard]] bool stop_pouring(unsigned s);
    /// What has come moves back there.
    void keep(unsigned s, const std::byte* buffer);

private:
    static constexpr std::uint64_t kImpossible = ~std::uint64_t{0};

    struct Gathering {
        bool is_on = false;
        Class cls = Class::user;
        std::uint64_t total = 0;
        std::uint64_t come = 0;
        std::byte* sink = nullptr;  ///< where to; null: to `bytes`
        bool sink_filled = false;
        std::vector<std::byte> bytes;
        std::unique_ptr<FarReading> reading;
        std::optional<unsigned> offered;  ///< its buffer, to be acknowledged when `read` has come
        std::optional<unsigned> unread;   ///< the buffer of `read`, behind which the bytes come
    };

    bool gather(unsigned s, const Arrival& a);
    void append(Gathering& g, std::span<const std::byte> bytes);
    bool gather_offered(unsigned s, const Arrival& a);
    bool read_offered(unsigned s, const Arrival& a);
    void give_up_reading(Gathering& g);
    void gather_read(unsigned s, const Arrival& a);
    bool begin_reading(unsigned s, const Arrival& a);
    void answer_offer(Gathering& g, unsigned s);
    std::uint64_t total_of(unsigned s, const Arrival& a) const;
    void start(Gathering& g, Class cls, std::uint64_t total);
    void give_up(unsigned s, const Arrival& a, Part part);

    Own& own_;
    SetAside& aside_;
    unsigned gathering_ = 0;  ///< senders of which a message is being gathered
    std::vector<Gathering> of_;
    /// Of messages that were taken back: they may still write into their own room.
    std::vector<std::unique_ptr<FarReading>> given_up_;
};

template <class Own>
int Reassembly<Own>::find(int src, Class cls) const {
    for (unsigned r = 0; gathering_ != 0 && r < own_.ranks; ++r) {
        if ((src == BBP_ANY || src == static_cast<int>(r)) && has(r, cls))
            return static_cast<int>(r);
    }
    return -1;
}

template <class Own>
bool Reassembly<Own>::set_aside(unsigned s, const Arrival& a) {
    const Part part = Own::part_of(a);
    if (of_[s].is_on || (part != Part::whole && part != Part::filling)) return gather(s, a);
    if (!own_.is_filled(s, a) || !aside_.has_room(a.length)) return false;
    aside_.push(a.cls, s, {own_.bytes_of(s, a), a.length});
    own_.board.take(s, a);
    if (!a.is_inline) own_.board.acknowledge(s, a.buffer);
    own_.count(Counter::set_aside);
    return true;
}

/// Takes one part. False while private memory has no room for the message.
template <class Own>
bool Reassembly<Own>::gather(unsigned s, const Arrival& a) {
    Gathering& g = of_[s];
    const Part part = Own::part_of(a);
    if constexpr (Own::Memory::kReplicated) {
        if (!a.corrupt && part == Part::offered) return gather_offered(s, a);
        if (!a.corrupt && part == Part::read) {
            gather_read(s, a);
            return true;
        }
    }
    std::size_t skipped = 0, bytes = a.length;
    if (!a.corrupt && part == Part::first && !g.is_on) {
        const std::uint64_t total = total_of(s, a);
        if (total == 0 || total == kImpossible) {
            own_.drop(s, a, total == 0 ? Counter::aborts_received : Counter::corrupt);
            return true;
        }
        if (!aside_.has_room(total)) return false;
        skipped = sizeof total;
        bytes -= skipped;
        g.bytes.reserve(bytes);  // before anything changes: without memory the message stays
        start(g, a.cls, total);
    } else if (a.corrupt || !g.is_on || (part != Part::more && part != Part::last)) {
        give_up(s, a, part);
        return true;
    }
    // An empty part is none that brings the message nearer to its end. One that has been read gets
    // no more than its end, though bytes for others come with that.
    const bool is_end = part == Part::last && g.come == g.total;
    if (is_end) bytes = 0;
    if (bytes > g.total - g.come || a.cls != g.cls || g.reading != nullptr || g.offered ||
        (bytes == 0 && part != Part::first && !is_end)) {
        give_up(s, a, part);
        return true;
    }
    const std::byte* from =
        own_.bytes_of(s, a) + skipped;  // only now that it is known to be in the bank
    append(g, {from, bytes});
    own_.board.take(s, a);
    answer_offer(g, s);
    own_.board.acknowledge(s, a.buffer);
    if (g.come == g.total) {
        g.sink_filled = g.sink != nullptr;
        if (!g.sink_filled) aside_.push({g.cls, s, std::move(g.bytes)});
        stop(s);
    }
    return true;
}

template <class Own>
void Reassembly<Own>::append(Gathering& g, std::span<const std::byte> bytes) {
    if (g.sink != nullptr) {
        std::memcpy(g.sink + g.come, bytes.data(), bytes.size());
    } else {
        RMEM_CHECK(g.bytes.size() == g.come);  // (R1)
        g.bytes.insert(g.bytes.end(), bytes.begin(), bytes.end());
    }
    g.come += bytes.size();
}

/// Without memory nothing of it has happened: it is still on the board.
template <class Own>
bool Reassembly<Own>::gather_offered(unsigned s, const Arrival& a) {
    try {
        return read_offered(s, a);
    } catch (...) {
        stop(s);
        throw;
    }
}

/// Takes an offer once all has been read, or nothing can be. False until then, and while private
/// memory has no room for the message.
template <class Own>
bool Reassembly<Own>::read_offered(unsigned s, const Arrival& a) {
    Gathering& g = of_[s];
    if (g.is_on && g.reading == nullptr) {
        give_up(s, a, Part::offered);  // in the middle of another message
        return true;
    }
    if (!g.is_on && !begin_reading(s, a)) return false;
    if (!g.is_on) return true;  // it was no offer
    if (total_of(s, a) == 0) {
        give_up_reading(g);
        stop(s);
        own_.drop(s, a, Counter::aborts_received);
        return true;
    }
    bool is_over = g.reading == nullptr;
    if (!is_over) {
        progress_far();
        for (auto bytes = g.reading->next(); !bytes.empty(); bytes = g.reading->next())
            append(g, bytes);
        g.reading->ask();
        is_over = g.come == g.total || g.reading->is_over_for_nothing();
    }
    if (!is_over) return false;
    g.reading.reset();
    own_.board.take(s, a);
    if (g.come == g.total) {
        g.offered = a.buffer;  // until `read` is here, which is told of first
        own_.count(Counter::offers_read);
        return true;
    }
    g.come = 0;
    g.bytes.clear();
    own_.board.acknowledge(s, a.buffer);
    own_.count(Counter::offers_unread);
    return true;
}

/// Its sender, which can be read from while it sends, does so no more, so its reads may not end for
/// long. Two such are too much.
template <class Own>
void Reassembly<Own>::give_up_reading(Gathering& g) {
    if (g.reading == nullptr || !g.reading->is_under_way()) return;
    const unsigned from = g.reading->from();
    if (std::any_of(given_up_.begin(), given_up_.end(),
                    [from](const auto& one) { return one->from() == from; }))
        return;
    g.reading->give_up();
    given_up_.push_back(std::move(g.reading));
}

/// What comes behind an offer. It is acknowledged with it by those who have read; else when the
/// message's bytes come, or nothing of it will.
template <class Own>
void Reassembly<Own>::gather_read(unsigned s, const Arrival& a) {
    Gathering& g = of_[s];
    own_.board.take(s, a);
    if (g.is_on && !g.offered && !g.unread) {
        g.unread = a.buffer;
        return;
    }
    own_.board.acknowledge(s, a.buffer);
    if (!g.offered) return;  // its message was taken back
    own_.board.acknowledge(s, *g.offered);
    g.offered.reset();
}

/// False while there is no room. Gathering is on then, unless it was no offer; and reading, if that
/// can be.
template <class Own>
bool Reassembly<Own>::begin_reading(unsigned s, const Arrival& a) {
    Gathering& g = of_[s];
    const std::uint64_t total = total_of(s, a);
    std::array<std::byte, FarOffer::kMaxBytes> bytes;
    std::optional<FarOffer> offer;
    if (total != kImpossible && a.length - kTotalBytes <= bytes.size()) {
        // A copy: its sender may go on writing.
        std::memcpy(bytes.data(), own_.bytes_of(s, a) + kTotalBytes, a.length - kTotalBytes);
        offer = FarOffer::read({bytes.data(), a.length - kTotalBytes});
    }
    if (total == 0 || !offer) {
        own_.drop(s, a, total == 0 ? Counter::aborts_received : Counter::corrupt);
        return true;
    }
    if (!aside_.has_room(total)) return false;
    std::unique_ptr<FarReading> reading;  // before anything changes
    if (own_.far != nullptr && own_.far->meet(s, offer->name))
        reading = std::make_unique<FarReading>(*own_.far, s, offer->place, total, own_.far_uses);
    start(g, a.cls, total);
    g.reading = std::move(reading);
    if (g.reading == nullptr) return true;
    g.bytes.reserve(std::min<std::size_t>(total, kFarReserveBytes));
    own_.far_patience.begin(own_.memory.now_ns());
    g.reading->ask();
    return true;
}

/// Of one whose end is there, or that has ended: what is not acknowledged yet.
template <class Own>
void Reassembly<Own>::answer_offer(Gathering& g, unsigned s) {
    for (auto* const buffer : {&g.unread, &g.offered}) {
        if (*buffer) own_.board.acknowledge(s, **buffer);
        buffer->reset();
    }
}

template <class Own>
void Reassembly<Own>::progress_far() {
    if (!own_.is_far_busy()) return;
    while (const auto ended = own_.far->progress()) {
        own_.far_patience.begin(own_.memory.now_ns());
        for (Gathering& g : of_) {
            if (g.reading != nullptr && g.reading->end(*ended)) break;
        }
        std::erase_if(given_up_, [&](const auto& one) {
            one->end(*ended);
            while (!one->next().empty()) {
            }
            return !one->is_under_way();
        });
    }
}

/// The size of the message that a first part begins: 0 if it has been taken back, kImpossible if it
/// is not valid. Read as words, since its sender may be taking it back just now.
template <class Own>
std::uint64_t Reassembly<Own>::total_of(unsigned s, const Arrival& a) const {
    if (a.length < kTotalBytes) return kImpossible;
    const std::size_t at = own_.geometry.data(s) + a.descriptor.offset;
    const std::uint64_t low = own_.memory.load(at), high = own_.memory.load(at + rmem::kWordBytes);
    if (low == 0) return 0;  // written first when taken back, last of all values when posted
    const std::uint64_t total = high << 32 | low;
    return total > a.length - kTotalBytes && total <= kMaxMessageBytes ? total : kImpossible;
}

template <class Own>
void Reassembly<Own>::start(Gathering& g, Class cls, std::uint64_t total) {
    RMEM_CHECK(g.sink == nullptr);  // (R2)
    g.is_on = true;
    ++gathering_;
    g.cls = cls;
    g.total = total;
    g.come = 0;
    g.bytes.clear();
}

template <class Own>
void Reassembly<Own>::stop(unsigned s) {
    Gathering& g = of_[s];
    if (g.is_on) --gathering_;
    g.is_on = false;
    g.sink = nullptr;
    g.bytes = {};
    g.reading.reset();
    answer_offer(g, s);
}

template <class Own>
void Reassembly<Own>::drop(unsigned s) {
    if (of_[s].is_on) own_.count(Counter::halves_dropped);
    stop(s);
}

/// A part that ends what has been gathered, or has no beginning.
template <class Own>
void Reassembly<Own>::give_up(unsigned s, const Arrival& a, Part part) {
    stop(s);
    if (part == Part::whole || part == Part::filling) {
        own_.count(Counter::halves_dropped);  // of the gathered message; this one is another
        return;
    }
    const bool rest = !a.corrupt && (part == Part::more || part == Part::last);
    own_.drop(s, a,
              part == Part::aborted ? Counter::aborts_received
              : rest                ? Counter::halves_dropped  // its beginning was taken back
                                    : Counter::corrupt);
}

template <class Own>
void Reassembly<Own>::gather_from(unsigned s) {
    Arrival a;
    for (unsigned looks = kMaxLooks<typename Own::Board>;
         looks > 0 && of_[s].is_on && own_.board.peek(s, a); --looks) {
        if (!gather(s, a)) return;
        RMEM_MARK("receive.part-taken");
    }
}

template <class Own>
void Reassembly<Own>::gather_all() {
    for (unsigned r = 0; gathering_ != 0 && r < own_.ranks; ++r) gather_from(r);
}

template <class Own>
void Reassembly<Own>::pour_into(unsigned s, std::byte* buffer) {
    Gathering& g = of_[s];
    RMEM_CHECK(g.is_on && g.bytes.size() == g.come && g.come <= g.total);  // (R1), (R2)
    g.sink = buffer;
    g.sink_filled = false;
    std::copy(g.bytes.begin(), g.bytes.end(), buffer);
}

template <class Own>
bool Reassembly<Own>::stop_pouring(unsigned s) {
    of_[s].sink = nullptr;
    return of_[s].sink_filled;
}

template <class Own>
void Reassembly<Own>::keep(unsigned s, const std::byte* buffer) {
    Gathering& g = of_[s];
    RMEM_CHECK(g.is_on && g.sink == nullptr);  // (R2)
    g.bytes.assign(buffer, buffer + g.come);
}

}  // namespace billboard
