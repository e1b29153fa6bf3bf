// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Random choices that are the same with every compiler and library.
///
/// splitmix64 (Steele, Lea, Flood 2014): any seed is a good one. One draw a statement: the order in
/// which arguments are evaluated is the compiler's.

#include <cstdint>

namespace simulator {

class Random {
public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    /// In [0, n); the bias of 2^-40 and less for the small n of a hunt does not matter.
    constexpr std::uint64_t below(std::uint64_t n) { return next() % n; }
    constexpr std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    constexpr bool one_in(std::uint64_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

}  // namespace simulator
