// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One node's interrupts in shared memory: what its ranks have marked, and the queue that they
/// read. rmem/ring/interrupts.cpp writes the marks, rmem/ring/interrupt_queue.cpp the queue.
/// Trust: all processes of the ring write it; a reader bounds what it takes.

#include "rmem/ring/config.hpp"
#include "rmem/ring/interrupts.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rmem {

// ---- Bits of the marks, and ranks of the set of watchers

inline constexpr unsigned kRanksPerChunk = 64;

/// The bits of chunk `chunk` that words [first, last] cover.
constexpr std::uint32_t mask_of(std::size_t chunk, std::size_t first, std::size_t last) {
    std::uint32_t mask = ~0U;
    if (chunk == first / kBitsPerChunk) mask &= ~0U << (first % kBitsPerChunk);
    if (chunk == last / kBitsPerChunk) mask &= ~0U >> (kBitsPerChunk - 1 - last % kBitsPerChunk);
    return mask;
}

// ---- The state word of a queue entry: lap | phase | rank | incarnation
// The lap comes first so that an entry tells which round it is for. They count from 1: a zeroed
// entry is of none. On link udp rank and incarnation are one number: which of the segment's
// engines.

enum class Phase : unsigned { full = 0, claimed = 1 };

inline constexpr unsigned kIncarnationBits = 20;
inline constexpr unsigned kRankBits = 10;
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
    return static_cast<std::uint32_t>(position / kInterruptQueueEntries + 1);
}
constexpr bool is_claimed(std::uint64_t state) {
    return ((state >> 30) & 3) == static_cast<std::uint64_t>(Phase::claimed);
}
constexpr std::uint32_t who_of(std::uint64_t state) {
    return static_cast<std::uint32_t>(state) & ((1U << (kIncarnationBits + kRankBits)) - 1);
}
/// How many laps `state` is ahead of `position`; negative: behind.
constexpr std::int32_t laps_ahead(std::uint64_t state, std::uint64_t position) {
    return static_cast<std::int32_t>(lap_of(state) - lap_at(position));
}

/// From which position on a reader takes a number that it does not accept.
inline constexpr std::uint64_t kNotAccepted = ~std::uint64_t{0};

/// Beside the origin of an interrupt that was sent to all.
inline constexpr std::uint32_t kToAll = std::uint32_t{1} << 31;

struct InterruptEntry {
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint64_t> offset;  ///< the claimer's, as the next one
    std::atomic<std::uint64_t> value_and_origin;
};

/// One node's part of the segment; the three bit maps follow it.
struct InterruptBoard::Area {
    alignas(kLineBytes) std::atomic<std::uint64_t> watched_anywhere;  ///< only node 0's is used
    alignas(kLineBytes) std::atomic<std::uint64_t> watched;  ///< bits set in `receive` and `any`
    std::array<std::atomic<std::uint64_t>, kMaxSeats / kRanksPerChunk> watchers;  ///< whom to wake
    std::atomic<std::uint64_t> accepted;  ///< by any of its ranks; counted in `watched` as one
    std::array<std::atomic<std::uint64_t>, kMaxSeats> accepted_by;  ///< by each rank
    alignas(kLineBytes) std::atomic<std::uint64_t> guard;  ///< 0, or the rank that changes the maps
    alignas(kLineBytes) std::atomic<std::uint64_t> tail;   ///< the next position to claim
    alignas(kLineBytes) std::array<InterruptEntry, kInterruptQueueEntries> entries;
};

}  // namespace rmem
