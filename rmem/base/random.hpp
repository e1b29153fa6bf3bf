// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Random numbers that are the same with every compiler and library; std's distributions are not.

#include <cstdint>

namespace rmem {

/// The next number of the sequence that `state` stands in: splitmix64 (Steele, Lea, Flood 2014).
/// Any seed is a good one.
constexpr std::uint64_t next_random(std::uint64_t& state) noexcept {
    state += 0x9e3779b97f4a7c15U;  // the golden ratio, as a step
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

/// One draw a statement: the order in which arguments are evaluated is the compiler's.
class Random {
public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t next() { return next_random(state_); }
    /// In [0, n); for small n the bias is 2^-40 and less.
    constexpr std::uint64_t below(std::uint64_t n) { return next() % n; }
    constexpr std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    constexpr bool one_in(std::uint64_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

}  // namespace rmem
