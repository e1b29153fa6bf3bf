// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Bytes that tell whether a message arrived intact, and its sender.
///
/// The bytes follow from (seed, size): another seed, a shifted, torn or cut message differs within
/// the first words. Reproducible everywhere: no std distributions.

#include "rmem/base/random.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rmem::test {

using rmem::next_random;

/// Writes the bytes of `seed` over `to`.
inline void fill(std::span<std::byte> to, std::uint64_t seed) {
    std::uint64_t state = seed * 0x2545f4914f6cdd1dU + to.size();
    std::size_t at = 0;
    for (; at + 8 <= to.size(); at += 8) {
        const std::uint64_t word = next_random(state);
        std::memcpy(to.data() + at, &word, 8);
    }
    if (at < to.size()) {
        const std::uint64_t word = next_random(state);
        std::memcpy(to.data() + at, &word, to.size() - at);
    }
}

inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
    std::vector<std::byte> bytes(size);
    fill(bytes, seed);
    return bytes;
}

/// The place of the first byte that is not the seed's; the size when all are.
inline std::size_t first_difference(std::span<const std::byte> found, std::uint64_t seed) {
    std::uint64_t state = seed * 0x2545f4914f6cdd1dU + found.size();
    for (std::size_t at = 0; at < found.size(); at += 8) {
        const std::uint64_t word = next_random(state);
        const std::size_t bytes = found.size() - at < 8 ? found.size() - at : 8;
        if (std::memcmp(found.data() + at, &word, bytes) == 0) continue;
        std::byte expected[8];
        std::memcpy(expected, &word, 8);
        for (std::size_t i = 0; i < bytes; ++i) {
            if (found[at + i] != expected[i]) return at + i;
        }
    }
    return found.size();
}

}  // namespace rmem::test
