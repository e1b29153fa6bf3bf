// SPDX-License-Identifier: Apache-2.0
// Raising interrupts, and taking them, by the queue of each node.

#include "rmem/base/fence.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/ring/interrupt_area.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/waiting/rank_bell.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace rmem {

namespace {

/// A push that others outrun this often finds nonsense in the queue: it gives up and counts.
constexpr unsigned kMaxPushTries = 1U << 20;
constexpr unsigned kMaxHalvings = 10;

}  // namespace

// ---- Raising

/// Of a register.
std::size_t InterruptBoard::number_of(std::size_t offset) const noexcept {
    return (offset - ring_.config().registers_offset()) / kRegisterBytes % kInterruptNumbers;
}

/// A write of one register.
void InterruptBoard::raise_sent(unsigned node, unsigned origin, std::size_t offset,
                                std::size_t bytes) noexcept {
    const RingConfig& config = ring_.config();
    if (bytes != kRegisterBytes || offset < config.register_offset(origin, 0) ||
        offset >= config.register_offset(origin + 1, 0) || offset % kRegisterBytes != 0)
        return;
    // relaxed is enough: as in change()
    const std::uint64_t accepted = area(node).accepted.load(std::memory_order_relaxed);
    if ((accepted >> number_of(offset) & 1) == 0) return;
    // relaxed is enough: this thread has just written or applied the word
    const std::uint32_t to =
        reinterpret_cast<const std::atomic<std::uint32_t>*>(ring_.bank(node) + offset)
            ->load(std::memory_order_relaxed);
    if (to == node || to == kAllNodes) push(node, offset, origin | (to == kAllNodes ? kToAll : 0));
}

template <class Raises>
void InterruptBoard::raise_words(unsigned node, unsigned origin, std::size_t offset,
                                 std::size_t bytes, Raises raises) noexcept {
    const std::size_t size = ring_.config().user_bytes;
    if (bytes == 0) return;
    if (offset >= size) return raise_sent(node, origin, offset, bytes);
    const std::size_t first = offset / kWordBytes;
    const std::size_t last = (offset + std::min(bytes, size - offset) - 1) / kWordBytes;
    for (std::size_t i = first / kBitsPerChunk; i <= last / kBitsPerChunk; ++i) {
        std::uint32_t hits = raises(i) & mask_of(i, first, last);
        for (; hits != 0; hits &= hits - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(hits));
            push(node, (i * kBitsPerChunk + bit) * kWordBytes, origin);
        }
    }
}

void InterruptBoard::written(std::size_t offset, std::size_t bytes) noexcept {
    const Bits* transmit = bits(node_, Map::transmit);
    for (unsigned n = 0; n < ring_.config().nodes; ++n) {
        // relaxed is enough, here and in the maps: as in change()
        if (n == node_ || area(n).watched.load(std::memory_order_relaxed) == 0) continue;
        const Bits* any = bits(n, Map::any);
        const Bits* receive = bits(n, Map::receive);
        raise_words(n, node_, offset, bytes, [&](std::size_t i) {
            // relaxed is enough: as in change()
            return any[i].load(std::memory_order_relaxed) |
                   (receive[i].load(std::memory_order_relaxed) &
                    transmit[i].load(std::memory_order_relaxed));
        });
    }
}

void InterruptBoard::applied_at(unsigned node, unsigned origin, std::size_t offset,
                                std::size_t bytes, bool marked) noexcept {
    // relaxed is enough, here and in the maps: as in change()
    if (origin == node || area(node).watched.load(std::memory_order_relaxed) == 0) return;
    const Bits* any = bits(node, Map::any);
    const Bits* receive = bits(node, Map::receive);
    raise_words(node, origin, offset, bytes, [&](std::size_t i) {
        // relaxed is enough: as in change()
        return any[i].load(std::memory_order_relaxed) |
               (marked ? receive[i].load(std::memory_order_relaxed) : 0U);
    });
}

void InterruptBoard::push(unsigned node, std::size_t offset, unsigned origin) noexcept {
    Area& to = area(node);
    Counters& counters = ring_.node(node).link;
    for (unsigned tries = 0; tries < kMaxPushTries; ++tries) {
        // relaxed is enough: a stale tail is found out by the entry's lap
        std::uint64_t tail = to.tail.load(std::memory_order_relaxed);
        InterruptEntry& entry = to.entries[tail % kInterruptQueueEntries];
        // relaxed is enough: the exchange (3) looks again
        std::uint64_t state = entry.state.load(std::memory_order_relaxed);
        // The claimer of a former lap may still be about to fill its entry, which is passed over.
        const bool is_free =
            laps_ahead(state, tail) < 0 && !(is_claimed(state) && is_claimer_alive(state));
        const std::uint64_t claimed = state_of(lap_at(tail), Phase::claimed, claimer_);
        // (3) - this acq_rel exchange synchronizes-with the acquire-load (5): a reader that sees
        // the claim knows of its engine
        const bool is_mine =
            is_free && entry.state.compare_exchange_strong(
                           state, claimed, std::memory_order_acq_rel, std::memory_order_relaxed);
        if (is_mine) RMEM_MARK("interrupt.tail-behind");
        // A writer that finds the entry claimed moves the tail on: its claimer may be dead.
        // (6) - this release-exchange synchronizes-with the acquire-load (8): a reader that finds
        // the tail moved sees the claim
        to.tail.compare_exchange_strong(tail, tail + 1, std::memory_order_release,
                                        std::memory_order_relaxed);
        if (!is_mine) continue;
        RMEM_MARK("interrupt.claimed");
        const bool is_sent = offset >= ring_.config().registers_offset();
        const std::byte* const word = ring_.bank(node) + offset + (is_sent ? kWordBytes : 0);
        // relaxed is enough: this thread has just written or applied the word
        const std::uint32_t value = reinterpret_cast<const std::atomic<std::uint32_t>*>(word)->load(
            std::memory_order_relaxed);
        // (7) - this release-store synchronizes-with the acquire-load (9): a reader that finds it
        // sees the claim
        entry.offset.store(offset, std::memory_order_release);
        // (10) - this release-store synchronizes-with the acquire-load (11): as before
        entry.value_and_origin.store(std::uint64_t{value} << 32 | origin,
                                     std::memory_order_release);
        // (4) - this release-store synchronizes-with the acquire-load (5) of the reader
        entry.state.store(state_of(lap_of(claimed), Phase::full), std::memory_order_release);
        RMEM_MARK("interrupt.filled");
        counters.add_shared(LinkCounter::interrupts_raised);
        wake_watchers(to, is_sent ? std::uint64_t{1} << number_of(offset) : 0);
        return;
    }
    counters.add_shared(LinkCounter::interrupts_lost);
}

/// Those that accept `number`, as its bit; 0: all.
void InterruptBoard::wake_watchers(const Area& to, std::uint64_t number) const noexcept {
    const auto* attention = ring_.attention();
    light_fence();
    for (unsigned i = 0; i < to.watchers.size(); ++i) {
        // relaxed is enough: as in change()
        std::uint64_t ranks = to.watchers[i].load(std::memory_order_relaxed);
        for (; ranks != 0; ranks &= ranks - 1) {
            const unsigned rank =
                i * kRanksPerChunk + static_cast<unsigned>(std::countr_zero(ranks));
            if (rank >= ring_.seats()) continue;
            // relaxed is enough: as in change()
            const auto accepted = to.accepted_by[rank].load(std::memory_order_relaxed);
            if (number != 0 && (accepted & number) == 0) continue;
            // relaxed is enough: the fence orders it after the store (4)
            std::uint32_t asked = attention[rank].load(std::memory_order_relaxed) & kInterruptsWake;
            if ((asked & kAttentionInterrupts) != 0 &&
                ring_bell(ring_, rank, BellUse::interrupts)) {
                asked &= ~kAttentionInterrupts;
            }
            if (asked != 0) wake_rank(ring_, rank);
        }
    }
}

// ---- Taking

bool InterruptBoard::is_claimer_alive(std::uint64_t state) const noexcept {
    const std::uint32_t who = who_of(state);
    if (!ring_.config().is_remote()) return is_rank_alive(who);
    // relaxed is enough: (5)
    return who == who_of(ring_.board().engines.load(std::memory_order_relaxed)) &&
           ring_.has_engine();
}

bool InterruptBoard::is_rank_alive(std::uint32_t who) const noexcept {
    const unsigned rank = who >> kIncarnationBits;
    if (rank >= ring_.seats()) return false;  // nonsense, so nobody who could go on
    // relaxed is enough: a claimer's incarnation was there before its claim
    const auto incarnation = ring_.rank(rank).incarnation.load(std::memory_order_relaxed);
    return who_is(rank, incarnation) == who && ring_.is_alive(rank);
}

/// Whether this rank asked for what stands at `at`.
bool InterruptBoard::is_for_me(const Interrupt& interrupt, std::uint64_t at) const noexcept {
    if (interrupt.kind == Interrupt::Kind::written) return true;
    return at >= since_[interrupt.offset].get();
}

InterruptBoard::Found InterruptBoard::look(std::uint64_t at, Interrupt& interrupt) const noexcept {
    const Area& mine = area(node_);
    const InterruptEntry& entry = mine.entries[at % kInterruptQueueEntries];
    // (5) - this acquire-load synchronizes-with the release-store (4) of the writer, and its claim
    // (3)
    std::uint64_t state = entry.state.load(std::memory_order_acquire);
    if (laps_ahead(state, at) < 0) {
        // (8) - this acquire-load synchronizes-with the release-exchange (6)
        const std::uint64_t tail = mine.tail.load(std::memory_order_acquire);
        if (static_cast<std::int64_t>(tail - at) <= 0) return Found::nothing;
        // relaxed is enough: the claim is seen (8), and look() comes again for what follows
        state = entry.state.load(std::memory_order_relaxed);
        return laps_ahead(state, at) < 0 ? Found::lost : Found::again;
    }
    if (laps_ahead(state, at) > 0) return Found::overrun;
    if (is_claimed(state)) {
        if (!is_claimer_alive(state)) return Found::lost;
        // relaxed is enough: it only has to be seen in the end
        const std::uint64_t tail = mine.tail.load(std::memory_order_relaxed);
        return tail - at > kInterruptQueueEntries ? Found::overrun : Found::nothing;
    }
    // (9) - this acquire-load synchronizes-with the release-store (7) of a later lap's claimer
    const std::uint64_t offset = entry.offset.load(std::memory_order_acquire);
    RMEM_MARK("interrupt.reading");
    // (11) - this acquire-load synchronizes-with the release-store (10): as before
    const std::uint64_t both = entry.value_and_origin.load(std::memory_order_acquire);
    // relaxed is enough: (9) and (11) come before it
    if (entry.state.load(std::memory_order_relaxed) != state) return Found::overrun;
    const auto value = static_cast<std::uint32_t>(both >> 32);
    const auto origin = static_cast<std::uint32_t>(both);
    interrupt = {offset, value, origin & ~kToAll, 0};
    if (offset >= ring_.config().registers_offset()) {
        interrupt.kind =
            (origin & kToAll) != 0 ? Interrupt::Kind::sent_to_all : Interrupt::Kind::sent;
        interrupt.offset = number_of(offset);
    }
    return Found::interrupt;
}

std::optional<Interrupt> InterruptBoard::take() noexcept {
    unsigned overruns = 0;
    for (unsigned tries = 0; tries < 2 * kInterruptQueueEntries; ++tries) {
        Interrupt taken;
        switch (look(next_, taken)) {
            case Found::nothing: return std::nullopt;
            case Found::again: break;
            case Found::lost: lose(1); break;
            case Found::overrun: {
                // A reader that is overrun again and again leaves out more each time.
                const unsigned kept = kInterruptQueueEntries >> std::min(overruns++, kMaxHalvings);
                // relaxed is enough: look() sees whether it is stale
                const std::uint64_t tail = area(node_).tail.load(std::memory_order_relaxed);
                const auto left = static_cast<std::int64_t>(tail - kept - next_);
                lose(left > 0 ? static_cast<std::uint64_t>(left) : 1);
                break;
            }
            case Found::interrupt:
                if (!is_for_me(taken, next_++)) break;
                taken.missed = std::exchange(missed_, 0);
                return taken;
        }
    }
    return std::nullopt;
}

/// The next positions.
void InterruptBoard::lose(std::uint64_t count) noexcept {
    next_ += count;
    missed_ += count;
    ring_.node(node_).link.add_shared(LinkCounter::interrupts_lost, count);
}

bool InterruptBoard::pending() const noexcept {
    for (std::uint64_t at = next_; at != next_ + kInterruptQueueEntries; ++at) {
        Interrupt interrupt;
        switch (look(at, interrupt)) {
            case Found::nothing: return false;
            case Found::again:
            case Found::overrun: return true;
            case Found::lost: break;
            case Found::interrupt:
                if (is_for_me(interrupt, at)) return true;
        }
    }
    return false;
}

}  // namespace rmem
