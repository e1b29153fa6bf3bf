// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The bytes of a hunt's messages, which follow from their sender and number.
/// Thread safety: values.

#include "rmem/base/hash.hpp"
#include "rmem/base/random.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace simulator::mpi {

/// The byte that fills a buffer before something is received into it.
inline constexpr std::byte kUntouched{0xee};

/// Calls `use` with each word of the message and how many of its bytes count.
template <class Use>
bool for_each_word(std::size_t size, unsigned from, std::uint32_t number, Use&& use) {
    rmem::Random random(std::uint64_t{number} << 8 ^ from);
    for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random.next();
        if (!use(at, word, std::min(size - at, sizeof word))) return false;
    }
    return true;
}

inline void fill(std::span<std::byte> bytes, unsigned from, std::uint32_t number) {
    for_each_word(bytes.size(), from, number,
                  [&](std::size_t at, std::uint64_t word, std::size_t count) {
                      std::memcpy(bytes.data() + at, &word, count);
                      return true;
                  });
}

/// Whether they are the beginning of that message.
inline bool matches(std::span<const std::byte> bytes, unsigned from, std::uint32_t number) {
    return for_each_word(bytes.size(), from, number,
                         [&](std::size_t at, std::uint64_t word, std::size_t count) {
                             return std::memcmp(bytes.data() + at, &word, count) == 0;
                         });
}

inline std::uint64_t sum_of(std::span<const std::byte> bytes) {
    std::uint64_t sum = bytes.size();
    for (std::size_t at = 0; at < bytes.size(); at += sizeof sum) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, std::min(bytes.size() - at, sizeof word));
        sum = rmem::golden_mix(sum, word);
        sum ^= sum >> 32;
    }
    return sum;
}

}  // namespace simulator::mpi
