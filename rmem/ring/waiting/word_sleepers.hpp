// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ranks that sleep until a word changes, in whichever bank is theirs.
///
/// A store that nobody sleeps for costs a look at one count, that of its word's line, which is in
/// the writer's cache and zero. The sleeper pays for the rest:
///
///     sleeper                                  writer
///     sleepers.add(rank, offset);              word.store(value, release);
///     if (word.load(acquire) == old) sleep();  if (sleepers.is_wanted(offset))
///     sleepers.remove(rank);                       sleepers.wake(offset, kWordBytes);
///
/// `add` ends with the heavy fence (rmem/base/fence.hpp), so of the two at least one sees what the
/// other has stored. An entry is good for one wake: the writer takes it out before it wakes, so the
/// next writer finds none, and one of a killed rank is found once. A sleeper that sleeps on enters
/// itself again, and looks again, first.
///
/// Words that are watched for interrupts (rmem/ring/interrupts.hpp) are counted, too: one look
/// tells whether anybody wants to know of the store.
///
/// Lines share counts (kBuckets): a store whose line shares one with that of a sleeper looks
/// through the ranks' entries, and wakes nobody. A rank killed between its entry and its count
/// leaves a count too high or an entry without one: the former costs such looks, the latter wakes
/// nobody.
///
/// Thread safety: any process; `add` and `remove` of a rank by one thread at a time.
/// Progress: wait-free. Trust: an entry that others have made up wakes a rank for nothing.

#include "rmem/base/fence.hpp"
#include "rmem/ring/config.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rmem {

class Ring;

/// In shared memory.
struct alignas(kLineBytes) SleeperCounts {
    static constexpr unsigned kBuckets = 256;
    std::atomic<std::uint32_t> all;
    alignas(kLineBytes) std::atomic<std::uint32_t> by_line[kBuckets];
};

class RMEM_API WordSleepers {
public:
    static constexpr unsigned kBuckets = SleeperCounts::kBuckets;
    static constexpr std::size_t kFewLines = 8;  ///< of a write: more are not looked up one by one

    /// The word that a rank sleeps for; 0: none.
    using Entry = std::atomic<std::uint64_t>;

    explicit WordSleepers(const Ring& ring) noexcept;

    /// Whether a rank may sleep for the word, or watch it, after it was stored.
    [[nodiscard]] bool is_wanted(std::size_t offset) const noexcept {
        light_fence();
        // relaxed is enough: the fence orders it after the store
        return of_line(offset).load(std::memory_order_relaxed) != 0;
    }
    /// The same of one of these words.
    [[nodiscard]] bool is_wanted(std::size_t offset, std::size_t bytes) const noexcept {
        light_fence();
        // relaxed is enough: the fence orders it after the stores
        return counts_.all.load(std::memory_order_relaxed) != 0 && is_line_wanted(offset, bytes);
    }
    /// Wakes those that sleep for one of these words, which were stored.
    void wake(std::size_t offset, std::size_t bytes) const noexcept;

    /// As many words of the line are watched, or not any more.
    void add_watched(std::size_t offset, unsigned words) const noexcept;
    void remove_watched(std::size_t offset, unsigned words) const noexcept;

    /// The rank sleeps soon, unless it sees the word changed; some microseconds, for the fence.
    void add(unsigned rank, std::size_t offset) const noexcept;
    /// Whether no writer has taken the rank's entry out since.
    [[nodiscard]] bool has(unsigned rank) const noexcept;
    void remove(unsigned rank) const noexcept;

private:
    std::atomic<std::uint32_t>& of_line(std::size_t offset) const noexcept {
        return *(counts_.by_line + offset / kLineBytes % kBuckets);
    }
    static std::uint64_t entry_of(std::size_t offset) noexcept { return offset / kWordBytes + 1; }
    static std::size_t offset_of(std::uint64_t entry) noexcept { return (entry - 1) * kWordBytes; }
    bool is_line_wanted(std::size_t offset, std::size_t bytes) const noexcept;
    [[nodiscard]] bool take_out(unsigned rank, std::uint64_t entry) const noexcept;

    const Ring& ring_;
    SleeperCounts& counts_;
    Entry* const entries_;  ///< of all ranks
};

}  // namespace rmem
