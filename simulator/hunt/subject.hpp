// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a hunt hunts on: how a seed of it is run and made smaller, and what is counted.
///
/// Thread safety: values; each call is a run of its own.

#include "simulator/hunt/findings.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace simulator {

struct Subject {
    std::string link;  ///< as in RMEM_LINK
    Kinds kinds;
    std::function<Findings(std::uint64_t seed, bool hash)> run;
    /// The smallest form of a failing seed, as text that replays it.
    std::function<std::string(std::uint64_t seed)> shrink;
    const char* seeds_file = "";  ///< where one is kept once it is mended
};

}  // namespace simulator
