// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The subject of a hunt: how a seed of it is run and made smaller, and what is counted.
///
/// Each hunt has a Scenario (simulator/hunt/seeded.hpp), options of which one is `hash`, and in
/// their namespace a run_scenario(scenario, options) that returns Findings.
///
/// Thread safety: values; each call is a run of its own.

#include "simulator/hunt/findings.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace simulator {

struct Subject {
    std::string option;  ///< of `rmem sim`, that means it
    Kinds kinds;
    const char* seeds_file = "";  ///< where a failing seed is kept once it is mended
    std::function<Findings(std::uint64_t seed, bool hash)> run;
    /// The smallest form of a failing seed, as text that replays it.
    std::function<std::string(std::uint64_t seed)> shrink;
};

/// The same failure with less: fewer messages and faults, found by leaving out.
template <class Scenario, class Options>
Scenario shrink(const Scenario& failing, const Options& options) {
    const auto fails = [&](const Scenario& scenario) {
        return !run_scenario(scenario, options).violations.empty();
    };
    Scenario best = failing;
    for (unsigned count = best.messages / 2; count > 0; count /= 2) {
        if (const Scenario less = best.with_messages(best.messages - count); fails(less))
            best = less;
    }
    std::vector<unsigned> places(best.faults.size());
    if (best.kept) {
        places = *best.kept;
    } else {
        std::iota(places.begin(), places.end(), 0U);
    }
    for (std::size_t i = places.size(); i-- > 0;) {
        std::vector<unsigned> fewer = places;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (const Scenario less = best.with_faults(fewer); fails(less)) {
            best = less;
            places = fewer;
        }
    }
    return best;
}

template <class Scenario, class CoverageMark, class Options>
Subject subject_of(const char* option, const char* seeds_file, const Options& options) {
    const Kinds kinds = {Kinds::of(Scenario::kFaultKinds), Kinds::of(every<CoverageMark>())};
    const auto run = [options](std::uint64_t seed, bool hash) {
        Options with_hash = options;
        with_hash.hash = hash;
        return run_scenario(Scenario::of_seed(seed), with_hash);
    };
    const auto smaller = [options](std::uint64_t seed) {
        return shrink(Scenario::of_seed(seed), options).text();
    };
    return {option, kinds, seeds_file, run, smaller};
}

}  // namespace simulator
