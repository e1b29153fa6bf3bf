// SPDX-License-Identifier: Apache-2.0
#include "rmem/interrupts.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/rank_bell.hpp"
#include "rmem/ring/waiting.hpp"
#include "rmem/ring/word_sleepers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <thread>

namespace rmem {

namespace {

constexpr unsigned kBitsPerChunk = 32;
constexpr unsigned kMaps = 3;
constexpr unsigned kRanksPerChunk = 64;
constexpr auto kGuardPause = std::chrono::microseconds(50);
/// A push that others outrun this often finds nonsense in the queue: it gives up and counts.
constexpr unsigned kMaxPushTries = 1U << 20;

// ---- The state word of a queue entry: lap | phase | rank | incarnation
// The lap comes first so that an entry tells which round it is for; a zeroed entry is free in lap
// 0. On link udp rank and incarnation are one number: which of the segment's engines.

enum class Phase : unsigned { free = 0, claimed = 1, full = 2 };

constexpr unsigned kIncarnationBits = 21;
constexpr unsigned kRankBits = 9;
static_assert(kMaxSeats <= 1U << kRankBits);

constexpr std::uint32_t who_is(unsigned rank, std::uint32_t incarnation) {
    return (rank << kIncarnationBits) | (incarnation & ((1U << kIncarnationBits) - 1));
}
constexpr std::uint64_t state_of(std::uint32_t lap, Phase phase, std::uint32_t who = 0) {
    return (std::uint64_t{lap} << 32) | (static_cast<std::uint64_t>(phase) << 30) | who;
}
constexpr std::uint32_t lap_of(std::uint64_t state) {
    return static_cast<std::uint32_t>(state >> 32);
}
constexpr std::uint32_t lap_at(std::uint64_t position) {
    return static_cast<std::uint32_t>(position / kInterruptQueueEntries);
}
constexpr Phase phase_of(std::uint64_t state) {
    return static_cast<Phase>((state >> 30) & 3);
}
constexpr std::uint32_t who_of(std::uint64_t state) {
    return static_cast<std::uint32_t>(state) & ((1U << (kIncarnationBits + kRankBits)) - 1);
}
/// How many laps `state` is ahead of `position`; negative: behind.
constexpr std::int32_t laps_ahead(std::uint64_t state, std::uint64_t position) {
    return static_cast<std::int32_t>(lap_of(state) - lap_at(position));
}

/// Beside the origin of an interrupt that was sent to all.
constexpr std::uint32_t kToAll = std::uint32_t{1} << 31;

struct Entry {
    std::atomic<std::uint64_t> state;
    std::uint64_t offset;  ///< this and the rest belong to the claimer, then to the reader
    std::uint32_t value;
    std::uint32_t origin;
};

constexpr std::size_t chunks_of(const RingConfig& config) {
    const std::size_t words = config.user_bytes / kWordBytes;
    return (words + kBitsPerChunk - 1) / kBitsPerChunk;
}

/// The bits of chunk `chunk` that words [first, last] cover.
constexpr std::uint32_t mask_of(std::size_t chunk, std::size_t first, std::size_t last) {
    std::uint32_t mask = ~0U;
    if (chunk == first / kBitsPerChunk) mask &= ~0U << (first % kBitsPerChunk);
    if (chunk == last / kBitsPerChunk) mask &= ~0U >> (kBitsPerChunk - 1 - last % kBitsPerChunk);
    return mask;
}

}  // namespace

/// One node's part of the segment; the three bit maps follow it.
struct InterruptBoard::Area {
    alignas(kLineBytes) std::atomic<std::uint64_t> watched_anywhere;  ///< only node 0's is used
    alignas(kLineBytes) std::atomic<std::uint64_t> watched;  ///< bits set in `receive` and `any`
    std::array<std::atomic<std::uint64_t>, kMaxRanks / kRanksPerChunk> watchers;  ///< whom to wake
    std::atomic<std::uint64_t> accepted;                   ///< numbers; counted in `watched` as one
    alignas(kLineBytes) std::atomic<std::uint64_t> guard;  ///< 0, or the rank that changes the maps
    alignas(kLineBytes) std::atomic<std::uint64_t> tail;   ///< the next position to claim
    std::atomic<std::uint64_t> lost;                       ///< pushes that found the queue full
    alignas(kLineBytes) std::atomic<std::uint64_t> head;   ///< the next position to take
    std::atomic<std::uint64_t> lost_reported;
    std::atomic<std::uint64_t> skipped;  ///< entries of the killed, not reported yet
    alignas(kLineBytes) std::array<Entry, kInterruptQueueEntries> entries;
};

/// Changes of one node's maps come one after the other; a dead holder's hold is taken over.
/// Not on a data path: only `watch`, `mark` and joining come here.
class InterruptBoard::Guard {
public:
    explicit Guard(const InterruptBoard& board)
        : word_(board.area(board.node_).guard),
          mine_((std::uint64_t{1} << 32) | who_is(board.rank_, board.incarnation_)) {
        std::uint64_t seen = 0;
        // (1) - this acquire-exchange synchronizes-with the release-store (2) of the last holder
        while (!word_.compare_exchange_strong(seen, mine_, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
            if (seen != 0 && board.is_rank_alive(who_of(seen))) {
                std::this_thread::sleep_for(kGuardPause);
                seen = 0;
            }  // else: take it over from the dead holder that we saw
        }
    }
    ~Guard() {
        // (2) - this release-store synchronizes-with the acquire-exchange (1) of the next holder
        word_.store(0, std::memory_order_release);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    std::atomic<std::uint64_t>& word_;
    std::uint64_t mine_;
};

void check_watchable(const RingConfig& config, std::size_t offset, std::size_t bytes) {
    const std::size_t size = config.user_bytes;
    if (bytes > 0 && offset < size && bytes <= size - offset) return;
    throw Error(
        Errc::invalid_argument,
        fmt::format("{} bytes at {:#x} are not within the memory of ring '{}', which has {} "
                    "bytes; give a range inside it",
                    bytes, offset, config.name, size));
}

void check_sendable(const RingConfig& config, unsigned to, unsigned number) {
    if (to != kAllNodes && to >= config.nodes) {
        throw Error(Errc::bad_rank,
                    fmt::format("there is no node {} in ring '{}', which has {}; they count from 0",
                                to, config.name, config.nodes));
    }
    if (number < kInterruptNumbers) return;
    throw Error(Errc::invalid_argument,
                fmt::format("there is no interrupt {}; their numbers are 0 to {}", number,
                            kInterruptNumbers - 1));
}

void check_acceptable(std::uint64_t numbers) {
    if (numbers >> kInterruptNumbers == 0) return;
    throw Error(Errc::invalid_argument,
                fmt::format("{:#x} has bits of interrupts that there are not; their numbers are 0 "
                            "to {}",
                            numbers, kInterruptNumbers - 1));
}

std::size_t interrupt_area_bytes(const RingConfig& config) noexcept {
    return InterruptBoard::area_bytes(config);
}

std::size_t InterruptBoard::area_bytes(const RingConfig& config) noexcept {
    return sizeof(Area) + kMaps * chunks_of(config) * sizeof(Bits);
}

InterruptBoard::InterruptBoard(Ring& ring, unsigned node, unsigned rank)
    : InterruptBoard(ring, node, rank, As::member) {}

InterruptBoard InterruptBoard::in_the_name_of(Ring& ring, unsigned node, unsigned rank) {
    return {ring, node, rank, As::observer};
}

InterruptBoard InterruptBoard::of_engine(Ring& ring, unsigned node) {
    return {ring, node, 0, As::engine};
}

InterruptBoard::InterruptBoard(Ring& ring, unsigned node, unsigned rank, As as)
    : ring_(ring),
      watched_anywhere_(&area(0).watched_anywhere),
      node_(node),
      rank_(rank),
      // relaxed is enough: it is this rank's own
      incarnation_(ring.rank(rank).incarnation.load(std::memory_order_relaxed)),
      // relaxed is enough: the engine has counted itself
      claimer_(as == As::engine ? who_of(ring.board().engines.load(std::memory_order_relaxed))
                                : who_is(rank, incarnation_)) {
    register_fences();  // for those that sleep for an interrupt: rmem/ring/waiting.hpp
    if (as == As::member) forget_the_dead();
}

InterruptBoard::Area& InterruptBoard::area(unsigned node) const noexcept {
    return *reinterpret_cast<Area*>(ring_.interrupt_area(node));
}

InterruptBoard::Bits* InterruptBoard::bits(unsigned node, Map map) const noexcept {
    auto* first = reinterpret_cast<Bits*>(ring_.interrupt_area(node) + sizeof(Area));
    return first + static_cast<std::size_t>(map) * chunks_of(ring_.config());
}

// ---- Marks

void InterruptBoard::forget_the_dead() {
    Guard guard(*this);
    Area& mine = area(node_);
    bool used = false;
    for (unsigned r = 0; r < ring_.config().ranks; ++r) {
        // relaxed is enough for the watchers here and below: only holders of the guard write them
        const auto chunk = mine.watchers[r / kRanksPerChunk].load(std::memory_order_relaxed);
        if (((chunk >> (r % kRanksPerChunk)) & 1) == 0) continue;
        if (r != rank_ && ring_.is_alive(r)) return;
        used = true;
    }
    if (!used) return;
    for (const Map map : {Map::receive, Map::any, Map::transmit}) {
        Bits* chunk = bits(node_, map);
        for (std::size_t i = 0; i < chunks_of(ring_.config()); ++i) {
            // relaxed is enough: as in change()
            const std::uint32_t words = chunk[i].exchange(0, std::memory_order_relaxed);
            if (map != Map::transmit && words != 0) count_watched(i, words, false);
        }
    }
    mine.accepted.store(0, std::memory_order_relaxed);  // enough: as above
    for (auto& chunk : mine.watchers)
        chunk.store(0, std::memory_order_relaxed);  // enough: as above
    // relaxed is enough: as in change()
    const auto watched = mine.watched.exchange(0, std::memory_order_relaxed);
    watched_anywhere_->fetch_sub(watched, std::memory_order_relaxed);
    while (take()) {  // the dead were meant
    }
}

/// Takes words of a chunk into the counts by line, or out of them.
void InterruptBoard::count_watched(std::size_t chunk, std::uint32_t words, bool set) noexcept {
    constexpr unsigned kLineWords = kLineBytes / kWordBytes;
    const WordSleepers sleepers(ring_);
    static_assert(kBitsPerChunk % kLineWords == 0);
    for (unsigned first = 0; first < kBitsPerChunk; first += kLineWords) {
        const std::uint32_t line = words >> first & ((1U << kLineWords) - 1);
        if (line == 0) continue;
        const std::size_t offset = (chunk * kBitsPerChunk + first) * kWordBytes;
        const auto count = static_cast<unsigned>(std::popcount(line));
        set ? sleepers.add_watched(offset, count) : sleepers.remove_watched(offset, count);
    }
}

void InterruptBoard::change(Map map, bool set, std::size_t offset, std::size_t bytes) {
    const std::size_t first = offset / kWordBytes;
    const std::size_t last = (offset + bytes - 1) / kWordBytes;
    Bits* chunks = bits(node_, map);
    Area& mine = area(node_);
    for (std::size_t i = first / kBitsPerChunk; i <= last / kBitsPerChunk; ++i) {
        const std::uint32_t mask = mask_of(i, first, last);
        // relaxed is enough for all of these: holders of the guard write one after the other, and a
        // writer that was told of the change by the one who made it sees it
        const std::uint32_t old = chunks[i].load(std::memory_order_relaxed);
        const std::uint32_t now = set ? old | mask : old & ~mask;
        if (map == Map::transmit) {
            chunks[i].store(now, std::memory_order_relaxed);  // enough: as above
            continue;
        }
        const auto changed = static_cast<std::uint64_t>(std::popcount(old ^ now));
        // The sums are never too small, wherever this process is killed.
        if (set) {
            count_watched(i, old ^ now, true);
            watched_anywhere_->fetch_add(changed, std::memory_order_relaxed);  // enough: as above
            mine.watched.fetch_add(changed, std::memory_order_relaxed);        // enough: as above
            chunks[i].store(now, std::memory_order_relaxed);                   // enough: as above
        } else {
            chunks[i].store(now, std::memory_order_relaxed);  // enough: as above
            count_watched(i, old ^ now, false);
            mine.watched.fetch_sub(changed, std::memory_order_relaxed);        // enough: as above
            watched_anywhere_->fetch_sub(changed, std::memory_order_relaxed);  // enough: as above
        }
    }
}

void InterruptBoard::note_watcher() noexcept {
    attends_ = true;
    // relaxed is enough: as in change()
    area(node_).watchers[rank_ / kRanksPerChunk].fetch_or(
        std::uint64_t{1} << (rank_ % kRanksPerChunk), std::memory_order_relaxed);
}

void InterruptBoard::attend() {
    if (attends_) return;
    Guard guard(*this);
    note_watcher();
}

void InterruptBoard::watch(std::size_t offset, std::size_t bytes, Trigger trigger) {
    check_watchable(ring_.config(), offset, bytes);
    Guard guard(*this);
    note_watcher();
    const bool any = trigger == Trigger::any_write;
    RMEM_MARK("interrupt.guarded");
    change(any ? Map::any : Map::receive, true, offset, bytes);
    change(any ? Map::receive : Map::any, false, offset, bytes);
}

void InterruptBoard::unwatch(std::size_t offset, std::size_t bytes) {
    check_watchable(ring_.config(), offset, bytes);
    Guard guard(*this);
    change(Map::any, false, offset, bytes);
    change(Map::receive, false, offset, bytes);
}

void InterruptBoard::accept(std::uint64_t numbers) {
    check_acceptable(numbers);
    Guard guard(*this);
    note_watcher();
    Area& mine = area(node_);
    // relaxed is enough for all of these: as in change(), also that no sum is ever too small
    const bool did = mine.accepted.load(std::memory_order_relaxed) != 0;
    if (numbers != 0 && !did) {
        watched_anywhere_->fetch_add(1, std::memory_order_relaxed);  // enough: as above
        mine.watched.fetch_add(1, std::memory_order_relaxed);        // enough: as above
    }
    mine.accepted.store(numbers, std::memory_order_relaxed);  // enough: as above
    if (numbers == 0 && did) {
        mine.watched.fetch_sub(1, std::memory_order_relaxed);        // enough: as above
        watched_anywhere_->fetch_sub(1, std::memory_order_relaxed);  // enough: as above
    }
}

void InterruptBoard::mark(std::size_t offset, std::size_t bytes) {
    check_watchable(ring_.config(), offset, bytes);
    Guard guard(*this);
    note_watcher();  // a rank that only marks also has something to forget
    change(Map::transmit, true, offset, bytes);
}

void InterruptBoard::unmark(std::size_t offset, std::size_t bytes) {
    check_watchable(ring_.config(), offset, bytes);
    Guard guard(*this);
    change(Map::transmit, false, offset, bytes);
}

bool InterruptBoard::is_marked(std::size_t offset, std::size_t bytes) const noexcept {
    const std::size_t first = offset / kWordBytes;
    const std::size_t last = (offset + bytes - 1) / kWordBytes;
    if (bytes == 0 || last >= ring_.config().user_bytes / kWordBytes) return false;
    const Bits* chunks = bits(node_, Map::transmit);
    for (std::size_t i = first / kBitsPerChunk; i <= last / kBitsPerChunk; ++i) {
        // relaxed is enough: the marks are this node's own
        if ((chunks[i].load(std::memory_order_relaxed) & mask_of(i, first, last)) != 0) return true;
    }
    return false;
}

bool InterruptBoard::is_watching(unsigned node) const noexcept {
    // relaxed is enough: as in change()
    return area(node).watched.load(std::memory_order_relaxed) != 0;
}

// ---- Raising

/// A write of one register.
void InterruptBoard::raise_sent(unsigned node, unsigned origin, std::size_t offset,
                                std::size_t bytes) noexcept {
    const RingConfig& config = ring_.config();
    if (bytes != kRegisterBytes || offset < config.register_offset(origin, 0) ||
        offset >= config.register_offset(origin + 1, 0) || offset % kRegisterBytes != 0)
        return;
    const std::size_t number =
        (offset - config.registers_offset()) / kRegisterBytes % kInterruptNumbers;
    // relaxed is enough: as in change()
    const std::uint64_t accepted = area(node).accepted.load(std::memory_order_relaxed);
    if ((accepted >> number & 1) == 0) return;
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
        Entry& entry = to.entries[tail % kInterruptQueueEntries];
        // relaxed is enough: the exchange (3) looks again
        std::uint64_t state = entry.state.load(std::memory_order_relaxed);
        const std::int32_t ahead = laps_ahead(state, tail);
        if (ahead < 0) break;  // the reader has not been here since the last lap: full
        const std::uint64_t claimed = state_of(lap_at(tail), Phase::claimed, claimer_);
        const bool is_free = ahead == 0 && phase_of(state) == Phase::free;
        // (3) - this acq_rel exchange synchronizes-with the release-store (6) or (7) that freed it,
        // and the acquire-load (5): a reader that sees the claim knows of its engine
        const bool is_mine =
            is_free && entry.state.compare_exchange_strong(
                           state, claimed, std::memory_order_acq_rel, std::memory_order_relaxed);
        if (is_mine) RMEM_MARK("interrupt.tail-behind");
        // A writer that finds the entry claimed moves the tail on: its claimer may be dead.
        // relaxed is enough: as the load of the tail
        to.tail.compare_exchange_strong(tail, tail + 1, std::memory_order_relaxed);
        if (!is_mine) continue;
        RMEM_MARK("interrupt.claimed");
        entry.offset = offset;
        entry.origin = origin;
        const bool is_sent = offset >= ring_.config().registers_offset();
        const std::byte* const word = ring_.bank(node) + offset + (is_sent ? kWordBytes : 0);
        // relaxed is enough: this thread has just written or applied the word
        entry.value = reinterpret_cast<const std::atomic<std::uint32_t>*>(word)->load(
            std::memory_order_relaxed);
        // (4) - this release-store synchronizes-with the acquire-load (5) of the reader
        entry.state.store(state_of(lap_of(claimed), Phase::full), std::memory_order_release);
        RMEM_MARK("interrupt.filled");
        counters.add_shared(LinkCounter::interrupts_raised);
        wake_watchers(to);
        return;
    }
    // relaxed is enough: a number for the reader's next report
    to.lost.fetch_add(1, std::memory_order_relaxed);
    counters.add_shared(LinkCounter::interrupts_lost);
}

void InterruptBoard::wake_watchers(const Area& to) const noexcept {
    const auto* attention = ring_.attention();
    light_fence();
    for (unsigned i = 0; i < to.watchers.size(); ++i) {
        // relaxed is enough: as in change()
        std::uint64_t ranks = to.watchers[i].load(std::memory_order_relaxed);
        for (; ranks != 0; ranks &= ranks - 1) {
            const unsigned rank =
                i * kRanksPerChunk + static_cast<unsigned>(std::countr_zero(ranks));
            if (rank >= ring_.config().ranks) continue;
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
    if (rank >= ring_.config().seats()) return false;  // nonsense, so nobody who could go on
    // relaxed is enough: a claimer's incarnation was there before its claim
    const auto incarnation = ring_.rank(rank).incarnation.load(std::memory_order_relaxed);
    return who_is(rank, incarnation) == who && ring_.is_alive(rank);
}

std::optional<Interrupt> InterruptBoard::take() noexcept {
    Area& mine = area(node_);
    for (unsigned tries = 0; tries < 2 * kInterruptQueueEntries; ++tries) {
        // relaxed is enough for the head: only the one reader moves it
        const std::uint64_t head = mine.head.load(std::memory_order_relaxed);
        Entry& entry = mine.entries[head % kInterruptQueueEntries];
        // (5) - this acquire-load synchronizes-with the release-store (4) of the writer, and its
        // claim (3)
        const std::uint64_t state = entry.state.load(std::memory_order_acquire);
        const std::int32_t ahead = laps_ahead(state, head);
        if (ahead < 0 || (ahead == 0 && phase_of(state) == Phase::free)) return std::nullopt;
        if (ahead > 0) {  // a reader was killed before it moved on
            mine.head.store(head + 1, std::memory_order_relaxed);  // enough: as above
            continue;
        }
        if (phase_of(state) != Phase::full) {
            if (is_claimer_alive(state)) return std::nullopt;
            // relaxed is enough: they are the reader's own counts
            mine.skipped.fetch_add(1, std::memory_order_relaxed);
            // (6) - this release-store synchronizes-with the acq_rel exchange (3) of the next
            // claimer
            entry.state.store(state_of(lap_at(head) + 1, Phase::free), std::memory_order_release);
            mine.head.store(head + 1, std::memory_order_relaxed);  // enough: as above
            continue;
        }
        Interrupt taken{entry.offset, entry.value, entry.origin & ~kToAll, 0};
        if (taken.offset >= ring_.config().registers_offset()) {
            taken.kind =
                (entry.origin & kToAll) != 0 ? Interrupt::Kind::sent_to_all : Interrupt::Kind::sent;
            taken.offset = (taken.offset - ring_.config().registers_offset()) / kRegisterBytes %
                           kInterruptNumbers;
        }
        // (7) - this release-store synchronizes-with the acq_rel exchange (3) of the next claimer
        entry.state.store(state_of(lap_at(head) + 1, Phase::free), std::memory_order_release);
        RMEM_MARK("interrupt.freed");
        mine.head.store(head + 1, std::memory_order_relaxed);  // enough: as above
        // relaxed is enough: they are the reader's own counts
        const std::uint64_t lost = mine.lost.load(std::memory_order_relaxed);
        taken.missed = lost - mine.lost_reported.exchange(lost, std::memory_order_relaxed) +
                       mine.skipped.exchange(0, std::memory_order_relaxed);
        return taken;
    }
    return std::nullopt;
}

bool InterruptBoard::pending() const noexcept {
    const Area& mine = area(node_);
    // relaxed is enough: the reader may be taking just now, and then the answer is old either way
    const std::uint64_t head = mine.head.load(std::memory_order_relaxed);
    for (std::uint64_t at = head; at < head + kInterruptQueueEntries; ++at) {
        // relaxed is enough: take() looks again before it reads the entry
        const std::uint64_t state =
            mine.entries[at % kInterruptQueueEntries].state.load(std::memory_order_relaxed);
        const std::int32_t ahead = laps_ahead(state, at);
        if (ahead < 0) return false;
        if (ahead > 0) continue;  // taken since we looked at the head
        if (phase_of(state) == Phase::free) return false;
        if (phase_of(state) == Phase::full) return true;
        if (is_claimer_alive(state)) return false;
    }
    return false;
}

}  // namespace rmem
