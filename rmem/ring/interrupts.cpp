// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/interrupts.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/ring/interrupt_area.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <thread>

namespace rmem {

namespace {

constexpr unsigned kMaps = 3;
constexpr auto kGuardPause = std::chrono::microseconds(50);

constexpr std::size_t chunks_of(const RingConfig& config) {
    const std::size_t words = config.user_bytes / kWordBytes;
    return (words + kBitsPerChunk - 1) / kBitsPerChunk;
}

}  // namespace

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
    throw Error(Errc::invalid_argument,
                bytes == 0
                    ? fmt::format("a range of no bytes at {:#x} of ring '{}'; give at least one",
                                  offset, config.name)
                    : fmt::format("{} bytes at {:#x} are not within the memory of ring '{}', which "
                                  "has {} bytes; give a range inside it",
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

InterruptBoard::InterruptBoard(const Ring& ring, unsigned node, unsigned rank)
    : InterruptBoard(ring, node, rank, As::member) {}

InterruptBoard InterruptBoard::in_the_name_of(const Ring& ring, unsigned node, unsigned rank) {
    return {ring, node, rank, As::observer};
}

InterruptBoard InterruptBoard::of_engine(const Ring& ring, unsigned node) {
    return {ring, node, 0, As::engine};
}

InterruptBoard::InterruptBoard(const Ring& ring, unsigned node, unsigned rank, As as)
    : ring_(ring),
      watched_anywhere_(&area(0).watched_anywhere),
      node_(node),
      marks_(bits(node, Map::transmit)),
      user_words_(ring.config().user_bytes / kWordBytes),
      rank_(rank),
      // relaxed is enough: it is this rank's own
      incarnation_(ring.rank(rank).incarnation.load(std::memory_order_relaxed)),
      // relaxed is enough: the engine has counted itself
      claimer_(as == As::engine ? who_of(ring.board().engines.load(std::memory_order_relaxed))
                                : who_is(rank, incarnation_)) {
    register_fences();  // for those that sleep for an interrupt: rmem/ring/waiting/waiting.hpp
    for (auto& since : since_) since.set(kNotAccepted);
    // relaxed is enough: what is raised from here on may be taken
    next_ = area(node_).tail.load(std::memory_order_relaxed);
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
    bool is_used = false, is_any_alive = false;
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        auto& chunk = mine.watchers[r / kRanksPerChunk];
        const std::uint64_t bit = std::uint64_t{1} << (r % kRanksPerChunk);
        // relaxed is enough for the watchers, and for what they accept: only holders of the guard
        // write them
        if ((chunk.load(std::memory_order_relaxed) & bit) == 0) continue;
        is_used = true;
        if (r != rank_ && ring_.is_alive(r)) {
            is_any_alive = true;
            continue;
        }
        mine.accepted_by[r].store(0, std::memory_order_relaxed);  // enough: as above
        chunk.fetch_and(~bit, std::memory_order_relaxed);         // enough: as above
    }
    if (!is_used) return;
    count_accepted();
    if (is_any_alive) return;
    for (const Map map : {Map::receive, Map::any, Map::transmit}) {
        Bits* chunk = bits(node_, map);
        for (std::size_t i = 0; i < chunks_of(ring_.config()); ++i) {
            // relaxed is enough: as in change()
            const std::uint32_t words = chunk[i].exchange(0, std::memory_order_relaxed);
            if (map != Map::transmit && words != 0) count_watched(i, words, false);
        }
    }
    // relaxed is enough: as in change()
    const auto watched = mine.watched.exchange(0, std::memory_order_relaxed);
    watched_anywhere_->fetch_sub(watched, std::memory_order_relaxed);
}

/// Takes into the node's numbers, and its counts, what its ranks accept.
void InterruptBoard::count_accepted() noexcept {
    Area& mine = area(node_);
    std::uint64_t numbers = 0;
    for (unsigned r = 0; r < ring_.seats(); ++r) {
        // relaxed is enough for all of these: as in change(), also that no sum is ever too small
        numbers |= mine.accepted_by[r].load(std::memory_order_relaxed);
    }
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
    // relaxed is enough, twice: as in change(); what came before is another rank's
    const std::uint64_t tail = mine.tail.load(std::memory_order_relaxed);
    for (unsigned number = 0; number < kInterruptNumbers; ++number) {
        if ((numbers >> number & 1) == 0) {
            since_[number].set(kNotAccepted);
        } else if (since_[number].get() == kNotAccepted) {
            since_[number].set(tail);
        }
    }
    mine.accepted_by[rank_].store(numbers, std::memory_order_relaxed);  // enough: as above
    count_accepted();
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

bool InterruptBoard::is_any_marked(std::size_t offset, std::size_t bytes) const noexcept {
    const std::size_t first = offset / kWordBytes;
    const std::size_t last = (offset + bytes - 1) / kWordBytes;
    if (bytes == 0 || last >= user_words_) return false;
    for (std::size_t i = first / kBitsPerChunk; i <= last / kBitsPerChunk; ++i) {
        // relaxed is enough: the marks are this node's own
        if ((marks_[i].load(std::memory_order_relaxed) & mask_of(i, first, last)) != 0) return true;
    }
    return false;
}

bool InterruptBoard::is_watching(unsigned node) const noexcept {
    // relaxed is enough: as in change()
    return area(node).watched.load(std::memory_order_relaxed) != 0;
}

}  // namespace rmem
