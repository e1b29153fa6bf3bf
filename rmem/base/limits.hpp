// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Sizes and counts that every layer knows. All else that a ring is made of: rmem/ring/config.hpp.

#include <cstddef>
#include <cstdint>

namespace rmem {

inline constexpr std::size_t kWordBytes = 4;  ///< the unit of atomicity
inline constexpr std::size_t kLineBytes = 64;
/// Memory is mapped in pages of as many: what is behind shares no page with what is before.
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr unsigned kMaxNodes = 256;
inline constexpr unsigned kMaxRanks = 256;

/// Bytes of a word, a bit each, the one at the lowest place lowest.
using WordPart = std::uint8_t;
inline constexpr WordPart kWholeWord = 0xF;

/// The least multiple of `step` that is not below `value`.
constexpr std::size_t round_up(std::size_t value, std::size_t step) noexcept {
    return (value + step - 1) / step * step;
}

}  // namespace rmem
