// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Copies of whole words into and out of memory that others read and write: none of them is seen
/// in part, and each is a release-store or an acquire-load.
///
/// Where the processor keeps the order of stores and of loads (x86-64), sixteen bytes at an
/// aligned place are one access, which is split between words at most: so blocks are copied by
/// these. Elsewhere, and where a sanitizer looks on, word by word. A library's memcpy is no choice:
/// it may move bytes.
///
/// The shared side is at a multiple of the word, the other at any address; `bytes` is whole words.
/// Thread safety: that is the point.

#include "rmem/base/limits.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_THREAD__)
#define RMEM_WORD_BY_WORD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RMEM_WORD_BY_WORD 1
#endif
#endif
#if !defined(__x86_64__) && !defined(RMEM_WORD_BY_WORD)
#define RMEM_WORD_BY_WORD 1
#endif

namespace rmem {

/// The loops over a block, with what is to be done for a word and for a lane.
namespace word_block {

inline constexpr std::size_t kLaneBytes = 16;

/// A compiler may not make a call of memcpy of the loop around it.
[[gnu::always_inline]] inline void keep_loop() noexcept {
    asm volatile("" ::: "memory");
}

/// `shared`: the side whose places decide.
template <class Word, class Lane>
[[gnu::always_inline]] inline void for_block(const std::byte* shared, std::size_t bytes, Word word,
                                             Lane lane) noexcept {
    std::size_t at = 0;
#if !defined(RMEM_WORD_BY_WORD)
    const std::size_t unaligned = reinterpret_cast<std::uintptr_t>(shared) % kLaneBytes;
    const std::size_t head = unaligned == 0 ? 0 : kLaneBytes - unaligned;
    for (; at < bytes && at < head; at += kWordBytes) word(at);
    for (; bytes - at >= 4 * kLaneBytes; at += 4 * kLaneBytes) {
        lane(at);
        lane(at + kLaneBytes);
        lane(at + 2 * kLaneBytes);
        lane(at + 3 * kLaneBytes);
        keep_loop();
    }
    for (; bytes - at >= kLaneBytes; at += kLaneBytes) {
        lane(at);
        keep_loop();
    }
#else
    static_cast<void>(shared);
    static_cast<void>(lane);
#endif
    for (; at < bytes; at += kWordBytes) word(at);
}

using LaneWords [[gnu::vector_size(kLaneBytes), gnu::may_alias]] = std::uint32_t;

}  // namespace word_block

/// Stores a word into shared memory.
[[gnu::always_inline]] inline void store_word(std::byte* to, std::uint32_t value) noexcept {
    // (1) - this release-store synchronizes-with the acquire-loads rmem/node_impl.hpp (1),
    // rmem/link/bank_writer.hpp (1), (2), tools/record/record_source.cpp (1) and
    // tools/watch/bank_view.cpp (1) of a reader
    reinterpret_cast<std::atomic<std::uint32_t>*>(to)->store(value, std::memory_order_release);
}

/// Stores a block into shared memory.
inline void store_block(std::byte* to, const void* from, std::size_t bytes) noexcept {
    const auto* source = static_cast<const std::byte*>(from);
    const auto word = [&](std::size_t at) {
        std::uint32_t value = 0;
        std::memcpy(&value, source + at, sizeof value);
        store_word(to + at, value);
    };
    const auto lane = [&](std::size_t at) {
        word_block::LaneWords words;
        std::memcpy(&words, source + at, sizeof words);
        *reinterpret_cast<word_block::LaneWords*>(to + at) = words;
    };
    word_block::keep_loop();
    word_block::for_block(to, bytes, word, lane);
    word_block::keep_loop();
}

/// Stores a flag and the words that follow it into shared memory: the flag last, and its line after
/// the others, since a reader that polls it takes it away meanwhile.
[[gnu::noinline]] inline void store_flagged(std::byte* to, const void* from,
                                            std::size_t bytes) noexcept {
    std::uint32_t first = 0;
    std::memcpy(&first, from, sizeof first);
    const auto* source = static_cast<const std::byte*>(from);
    const std::size_t line = kLineBytes - (reinterpret_cast<std::uintptr_t>(to) & (kLineBytes - 1));
    if (bytes > line) store_block(to + line, source + line, bytes - line);
    const std::size_t here = std::min(bytes, line);
    if (here > kWordBytes) store_block(to + kWordBytes, source + kWordBytes, here - kWordBytes);
    store_word(to, first);
}

/// Loads a block from shared memory.
inline void load_block(void* to, const std::byte* from, std::size_t bytes) noexcept {
    auto* target = static_cast<std::byte*>(to);
    const auto word = [&](std::size_t at) {
        // (2) - this acquire-load synchronizes-with the release-store (1)
        const std::uint32_t value =
            reinterpret_cast<const std::atomic<std::uint32_t>*>(from + at)->load(
                std::memory_order_acquire);
        std::memcpy(target + at, &value, sizeof value);
    };
    const auto lane = [&](std::size_t at) {
        const auto words = *reinterpret_cast<const word_block::LaneWords*>(from + at);
        std::memcpy(target + at, &words, sizeof words);
    };
    word_block::keep_loop();
    word_block::for_block(from, bytes, word, lane);
    word_block::keep_loop();
}

/// Whether two blocks of shared memory hold the same, each of their words at some moment.
inline bool is_same_block(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
    std::uint32_t differences = 0;
    word_block::LaneWords lanes{};
    const auto word = [&](std::size_t at) {
        std::uint32_t one = 0, other = 0;
        load_block(&one, a + at, kWordBytes);
        load_block(&other, b + at, kWordBytes);
        differences |= one ^ other;
    };
    const auto lane = [&](std::size_t at) {
        lanes |= *reinterpret_cast<const word_block::LaneWords*>(a + at) ^
                 *reinterpret_cast<const word_block::LaneWords*>(b + at);
    };
    word_block::keep_loop();
    word_block::for_block(a, bytes, word, lane);
    word_block::keep_loop();
    return (differences | lanes[0] | lanes[1] | lanes[2] | lanes[3]) == 0;
}

/// Whether a block of shared memory holds zeros only, each of its words at some moment.
inline bool is_zero_block(const std::byte* from, std::size_t bytes) noexcept {
    std::uint32_t bits = 0;
    word_block::LaneWords lanes{};
    const auto word = [&](std::size_t at) {
        std::uint32_t one = 0;
        load_block(&one, from + at, kWordBytes);
        bits |= one;
    };
    const auto lane = [&](std::size_t at) {
        lanes |= *reinterpret_cast<const word_block::LaneWords*>(from + at);
    };
    word_block::keep_loop();
    word_block::for_block(from, bytes, word, lane);
    word_block::keep_loop();
    return (bits | lanes[0] | lanes[1] | lanes[2] | lanes[3]) == 0;
}

}  // namespace rmem

#undef RMEM_WORD_BY_WORD
