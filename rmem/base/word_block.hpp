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
/// What is less than a word says which bytes of it: others may store the rest at the same time.
/// Thread safety: that is the point.

#include "rmem/base/limits.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

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

constexpr WordPart part_of_word(std::size_t first, std::size_t bytes) noexcept {
    return static_cast<WordPart>(((1U << bytes) - 1) << first & kWholeWord);
}
/// The bytes in which two words differ.
inline WordPart differing_part(std::uint32_t a, std::uint32_t b) noexcept {
    const auto bytes = std::bit_cast<std::array<std::uint8_t, kWordBytes>>(a ^ b);
    unsigned part = 0;
    for (unsigned i = 0; i < kWordBytes; ++i) part |= (bytes[i] != 0 ? 1U : 0U) << i;
    return static_cast<WordPart>(part);
}
/// Calls visit(offset in them, bytes) for each run of those bytes of words that a write has: of all
/// words, or of the part of one.
template <class Visit>
void for_each_run(WordPart part, std::span<const std::byte> words, Visit visit) {
    if (part == kWholeWord) return visit(std::size_t{0}, words);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::size_t first = i;
        while (i < words.size() && (part >> i & 1) != 0) ++i;
        if (i != first) visit(first, words.subspan(first, i - first));
    }
}
/// `value` where `part` has bytes, `rest` elsewhere.
inline std::uint32_t with_part(std::uint32_t rest, std::uint32_t value, WordPart part) noexcept {
    std::array<std::uint8_t, kWordBytes> bytes;
    for (unsigned i = 0; i < kWordBytes; ++i) bytes[i] = (part >> i & 1U) != 0 ? 0xFF : 0;
    const auto mask = std::bit_cast<std::uint32_t>(bytes);
    return (rest & ~mask) | (value & mask);
}

/// How far left a number of that many bytes lies in a word, from the word's byte `first` on.
constexpr std::size_t shift_in_word(std::size_t first, std::size_t bytes) noexcept {
    const bool is_little = std::endian::native == std::endian::little;
    return 8 * (is_little ? first : kWordBytes - first - bytes);
}
/// The word that has these bytes from its byte `first` on, and zeros beside them.
[[gnu::always_inline]] inline std::uint32_t word_with(const void* from, std::size_t first,
                                                      std::size_t bytes) noexcept {
    const auto number = [from, first](auto value, std::size_t at) {
        std::memcpy(&value, static_cast<const std::byte*>(from) + at, sizeof value);
        return std::uint32_t{value} << shift_in_word(first + at, sizeof value);
    };
    if (bytes == 1) return number(std::uint8_t{}, 0);
    if (bytes == 2) return number(std::uint16_t{}, 0);
    if (bytes == 3) return number(std::uint16_t{}, 0) | number(std::uint8_t{}, 2);
    return number(std::uint32_t{}, 0);
}

/// Stores a byte into shared memory.
[[gnu::always_inline]] inline void store_byte(std::byte* to, std::uint8_t value) noexcept {
    // (5) - this release-store synchronizes-with the acquire-load (2) of a reader
    reinterpret_cast<std::atomic<std::uint8_t>*>(to)->store(value, std::memory_order_release);
}

/// Stores a part of a word into shared memory. None of its bytes is seen without the others, and no
/// store of somebody else beside it is undone.
[[gnu::always_inline]] inline void store_part(std::byte* to, std::uint32_t value,
                                              WordPart part) noexcept {
    const auto store = [&]<class T>(T, std::size_t first) {
        // (3) - this release-store synchronizes-with the acquire-load (2) of a reader
        reinterpret_cast<std::atomic<T>*>(to + first)
            ->store(static_cast<T>(value >> shift_in_word(first, sizeof(T))),
                    std::memory_order_release);
    };
    switch (part) {
        case part_of_word(0, 1): return store(std::uint8_t{}, 0);
        case part_of_word(1, 1): return store(std::uint8_t{}, 1);
        case part_of_word(2, 1): return store(std::uint8_t{}, 2);
        case part_of_word(3, 1): return store(std::uint8_t{}, 3);
        case part_of_word(0, 2): return store(std::uint16_t{}, 0);
        case part_of_word(2, 2): return store(std::uint16_t{}, 2);
        default: break;
    }
    auto& word = *reinterpret_cast<std::atomic<std::uint32_t>*>(to);
    // relaxed is enough, here and where the exchange fails: it is only compared
    std::uint32_t before = word.load(std::memory_order_relaxed);
    // (4) - this release-exchange synchronizes-with the acquire-load (2) of a reader
    while (!word.compare_exchange_weak(before, with_part(before, value, part),
                                       std::memory_order_release, std::memory_order_relaxed)) {
    }
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
        // (2) - this acquire-load synchronizes-with the release-stores (1), (3) and (5), and the
        // release-exchange (4)
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
