// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Random numbers that are the same with every compiler and library; std's distributions are not.

#include <cstdint>

namespace rmem {

/// The next number of the sequence that `state` stands in: splitmix64 (Steele, Lea, Flood 2014).
/// Any seed is a good one.
constexpr std::uint64_t next_random(std::uint64_t& state) noexcept {
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

}  // namespace rmem
