// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/word_sleepers.hpp"

#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/waiting.hpp"

namespace rmem {

WordSleepers::WordSleepers(const Ring& ring) noexcept
    : ring_(ring), counts_(ring.sleeper_counts()), entries_(ring.sleeper_entries()) {}

void WordSleepers::add(unsigned rank, std::size_t offset) const noexcept {
    remove(rank);  // one that a late wake of the last sleep has left is counted once
    // relaxed is enough, for the entry and the counts: the fence orders them before the look at the
    // word that follows, and against a writer's looks
    entries_[rank].store(entry_of(offset), std::memory_order_relaxed);
    of_line(offset).fetch_add(1, std::memory_order_relaxed);  // enough: as above
    counts_.all.fetch_add(1, std::memory_order_relaxed);      // enough: as above
    heavy_fence();
}

bool WordSleepers::has(unsigned rank) const noexcept {
    // relaxed is enough: a writer that has taken it out wakes the rank after that
    return entries_[rank].load(std::memory_order_relaxed) != 0;
}

void WordSleepers::remove(unsigned rank) const noexcept {
    // relaxed is enough: as in has()
    const std::uint64_t entry = entries_[rank].load(std::memory_order_relaxed);
    if (entry != 0) static_cast<void>(take_out(rank, entry));
}

/// True for the one that takes it out, who takes it off the counts, too.
bool WordSleepers::take_out(unsigned rank, std::uint64_t entry) const noexcept {
    // relaxed is enough, here and for the counts: the wake that follows orders them
    if (!entries_[rank].compare_exchange_strong(entry, 0, std::memory_order_relaxed)) return false;
    of_line(offset_of(entry)).fetch_sub(1, std::memory_order_relaxed);  // enough: as above
    counts_.all.fetch_sub(1, std::memory_order_relaxed);                // enough: as above
    return true;
}

bool WordSleepers::is_line_wanted(std::size_t offset, std::size_t bytes) const noexcept {
    const std::size_t first = offset / kLineBytes;
    const std::size_t last = (offset + bytes - 1) / kLineBytes;
    if (last - first >= kFewLines) return true;
    for (std::size_t line = first; line <= last; ++line) {
        // relaxed is enough: the caller's fence orders it after the stores
        if (of_line(line * kLineBytes).load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
}

void WordSleepers::wake(std::size_t offset, std::size_t bytes) const noexcept {
    light_fence();
    const std::uint64_t first = entry_of(offset);
    const std::uint64_t last = entry_of(offset + bytes - kWordBytes);
    for (unsigned rank = 0; rank < ring_.seats(); ++rank) {
        // relaxed is enough: the fence orders it after the stores
        const std::uint64_t entry = entries_[rank].load(std::memory_order_relaxed);
        if (entry < first || entry > last) continue;
        if (take_out(rank, entry)) wake_rank(ring_, rank);
    }
}

void WordSleepers::add_watched(std::size_t offset, unsigned words) const noexcept {
    // relaxed is enough: a writer that was told of the watching by its watcher sees it
    of_line(offset).fetch_add(words, std::memory_order_relaxed);
    counts_.all.fetch_add(words, std::memory_order_relaxed);  // enough: as above
}

void WordSleepers::remove_watched(std::size_t offset, unsigned words) const noexcept {
    // relaxed is enough: an old count costs a look
    of_line(offset).fetch_sub(words, std::memory_order_relaxed);
    counts_.all.fetch_sub(words, std::memory_order_relaxed);  // enough: as above
}

}  // namespace rmem
