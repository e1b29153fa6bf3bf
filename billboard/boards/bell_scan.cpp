// SPDX-License-Identifier: Apache-2.0
#include "billboard/boards/bell_scan.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

// The thread sanitizer cannot know that vector loads race on purpose.
#if defined(__has_feature)
#define BBP_THREAD_SANITIZER __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define BBP_THREAD_SANITIZER 1
#else
#define BBP_THREAD_SANITIZER 0
#endif
#if defined(__x86_64__) && !BBP_THREAD_SANITIZER
#define BBP_SCANS_VECTORS 1
#include <immintrin.h>
#else
#define BBP_SCANS_VECTORS 0
#endif

namespace billboard {

namespace {

unsigned next_by_words(const std::uint32_t* bells, const std::uint32_t* seen, unsigned from,
                       unsigned to) noexcept {
    for (unsigned i = from; i < to; ++i) {
        // relaxed is enough: the answer is a hint
        const auto bell =
            std::atomic_ref(const_cast<std::uint32_t&>(bells[i])).load(std::memory_order_relaxed);
        if (bell != seen[i]) return i;
    }
    return to;
}

#if BBP_SCANS_VECTORS
struct Block {
    __m256i low, high;  ///< bits that differ
};

[[gnu::target("avx2")]] inline Block differing(const std::uint32_t* bells,
                                               const std::uint32_t* seen, unsigned at) noexcept {
    const auto* theirs = reinterpret_cast<const __m256i*>(bells + at);
    const auto* mine = reinterpret_cast<const __m256i*>(seen + at);
    return {_mm256_xor_si256(_mm256_loadu_si256(theirs), _mm256_loadu_si256(mine)),
            _mm256_xor_si256(_mm256_loadu_si256(theirs + 1), _mm256_loadu_si256(mine + 1))};
}

/// A bit for each word of the block that differs.
[[gnu::target("avx2")]] inline unsigned words_of(Block block) noexcept {
    const __m256i zero = _mm256_setzero_si256();
    const __m256 low = _mm256_castsi256_ps(_mm256_cmpeq_epi32(block.low, zero));
    const __m256 high = _mm256_castsi256_ps(_mm256_cmpeq_epi32(block.high, zero));
    const auto same = static_cast<unsigned>(_mm256_movemask_ps(low)) |
                      static_cast<unsigned>(_mm256_movemask_ps(high)) << 8;
    return ~same & 0xffffU;
}

[[gnu::target("avx2")]] unsigned next_by_vectors(const std::uint32_t* bells,
                                                 const std::uint32_t* seen, unsigned from,
                                                 unsigned to) noexcept {
    if (from >= to) return to;
    unsigned at = from / kScanBlock * kScanBlock;
    unsigned words = words_of(differing(bells, seen, at)) & (0xffffU << from % kScanBlock);
    while (words == 0) {
        at += kScanBlock;
        if (at >= to) return to;
        const Block block = differing(bells, seen, at);
        const __m256i any = _mm256_or_si256(block.low, block.high);
        if (_mm256_testz_si256(any, any) == 0) words = words_of(block);
    }
    return std::min(at + static_cast<unsigned>(std::countr_zero(words)), to);
}

[[gnu::target("avx2")]] bool any_by_vectors(const std::uint32_t* bells, const std::uint32_t* seen,
                                            unsigned words) noexcept {
    __m256i low = _mm256_setzero_si256(), high = low;
    // One branch, at the end: faster than to stop early.
    for (unsigned at = 0; at < words; at += kScanBlock) {
        const Block block = differing(bells, seen, at);
        low = _mm256_or_si256(low, block.low);
        high = _mm256_or_si256(high, block.high);
    }
    const __m256i any = _mm256_or_si256(low, high);
    return _mm256_testz_si256(any, any) == 0;
}

const bool scans_vectors = __builtin_cpu_supports("avx2") != 0;
#endif

}  // namespace

unsigned next_difference(const std::uint32_t* bells, const std::uint32_t* seen, unsigned from,
                         unsigned to) noexcept {
#if BBP_SCANS_VECTORS
    if (scans_vectors) return next_by_vectors(bells, seen, from, to);
#endif
    return next_by_words(bells, seen, from, to);
}

bool any_difference(const std::uint32_t* bells, const std::uint32_t* seen,
                    unsigned words) noexcept {
#if BBP_SCANS_VECTORS
    if (scans_vectors) return any_by_vectors(bells, seen, words);
#endif
    return next_by_words(bells, seen, 0, words) < words;
}

}  // namespace billboard
