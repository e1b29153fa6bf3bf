// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The next of many words that differs from its last seen value: a receiver from anybody looks at
/// all bells so.
///
/// Both arrays hold whole blocks of 16 words, one cache line; `bells` starts at one. Other
/// processes write it meanwhile: an answer is a hint, to be checked by an acquire-load of the word
/// that the bell announces.
/// Thread safety: any thread. Cost of 256 equal words where the processor has AVX2: 12 ns to find
/// none, 9 ns to say that there is none, which is what loading them costs.

#include "rmem/error.hpp"

#include <cstdint>

namespace billboard {

inline constexpr unsigned kScanBlock = 16;

/// The first index in [from, to) at which they differ; `to` if there is none.
RMEM_API unsigned next_difference(const std::uint32_t* bells, const std::uint32_t* seen,
                                  unsigned from, unsigned to) noexcept;

/// Whether they differ anywhere in the first `words`, a whole number of blocks.
[[nodiscard]] RMEM_API bool any_difference(const std::uint32_t* bells, const std::uint32_t* seen,
                                           unsigned words) noexcept;

}  // namespace billboard
