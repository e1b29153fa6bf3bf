// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a program under load writes, word by word, between its thread and the thread that runs the
/// engine in the same process: so it need not lock the engine for each word.
///
/// Invariant: entries are read once, in the order in which they were put.
/// Thread safety: one thread puts; one at a time reads (the engine's user); either asks is_empty().
/// Progress: neither waits. A full stream refuses.

#include "rmem/base/check.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/link/udp/protocol/short_write.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::udp {

class WordStream {
public:
    static constexpr std::uint64_t kEntries = 1024;  ///< some ten full datagrams

    // ---- The program's thread
    [[nodiscard]] bool has_room(std::uint64_t writes = 1) noexcept {
        if (head() + writes <= read_seen_ + kEntries) return true;
        // (1) - this acquire-load synchronizes-with the release-store (2): what was read may be
        // overwritten
        read_seen_ = read_.load(std::memory_order_acquire);
        return head() + writes <= read_seen_ + kEntries;
    }
    /// False: there is no room.
    [[nodiscard]] bool put(const ShortWrite& write) noexcept {
        if (!has_room()) return false;
        const std::uint64_t at = head();
        entries_[at % kEntries] = write;
        // (3) - this release-store synchronizes-with the acquire-load (4)
        head_.store(at + 1, std::memory_order_release);
        return true;
    }

    // ---- Who runs the engine
    [[nodiscard]] bool is_empty() const noexcept { return waiting().empty(); }
    /// The oldest ones, as many as lie in a row.
    [[nodiscard]] std::span<const ShortWrite> waiting() const noexcept {
        const std::uint64_t read = read_.load(std::memory_order_relaxed);  // enough: the reader's
        // (4) - this acquire-load synchronizes-with the release-store (3)
        const std::uint64_t count = head_.load(std::memory_order_acquire) - read;
        RMEM_CHECK_IF(false, count <= kEntries);
        const std::uint64_t place = read % kEntries;
        return {&entries_[place], std::min(count, kEntries - place)};
    }
    /// That many of these have been read.
    void pass(std::size_t count) noexcept {
        const std::uint64_t read = read_.load(std::memory_order_relaxed);  // enough: the reader's
        // (2) - this release-store synchronizes-with the acquire-load (1)
        read_.store(read + count, std::memory_order_release);
    }
    void clear() noexcept {
        while (!is_empty()) pass(waiting().size());
    }

private:
    std::uint64_t head() const noexcept {
        return head_.load(std::memory_order_relaxed);  // relaxed is enough: the writer's own
    }

    alignas(kLineBytes) std::atomic<std::uint64_t> head_{0};  ///< counts what was put
    std::uint64_t read_seen_ = 0;                             ///< by the program's thread
    alignas(kLineBytes) std::atomic<std::uint64_t> read_{0};  ///< counts what was read
    alignas(kLineBytes) std::array<ShortWrite, kEntries> entries_{};
};

}  // namespace rmem::udp
