// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Random choices that are the same with every compiler and library.
///
/// One draw a statement: the order in which arguments are evaluated is the compiler's.

#include "rmem/base/random.hpp"

#include <cstdint>

namespace simulator {

class Random {
public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t next() { return rmem::next_random(state_); }
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
