// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A seed, whole or in part, as a line of text: "<seed>" or "<seed>:messages=<n>,faults=<i>.<j>…"
/// (places in the seed's list of faults, in its order; "none").
///
/// Thread safety: values. Errors: `parse` throws rmem::Error(invalid_argument).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simulator {

// Of virtual time, in nanoseconds.
inline constexpr std::int64_t kMicrosecond = 1'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;

struct SeedText {
    std::uint64_t seed = 0;
    std::optional<unsigned> messages;             ///< if not as many as the seed has
    std::optional<std::vector<unsigned>> faults;  ///< places, if not all

    /// `most_faults`: that a seed has.
    static SeedText parse(std::string_view text, unsigned most_faults);
    std::string text() const;
};

}  // namespace simulator
