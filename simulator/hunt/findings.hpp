// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a run broke, and what it met: injected faults, and coverage marks. Each hunt has kinds of
/// its own, an enum for either, with a name_of().
///
/// Thread safety: none. A run goes on after a finding, so that the trace shows what came of it;
/// only the first few sentences are kept.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simulator {

/// All values of an enum that ends with count_, in their order.
template <class Kind>
constexpr auto every() {
    std::array<Kind, static_cast<std::size_t>(Kind::count_)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all.at(i) = static_cast<Kind>(i);
    return all;
}

/// The kinds that a hunt counts, in the order of its enums.
struct Kinds {
    struct Kind {
        const char* name;
        std::size_t place;  ///< among Findings' counts
    };
    std::vector<Kind> faults, coverage;

    /// `all`: values of one enum.
    template <class Values>
    static std::vector<Kind> of(const Values& all) {
        std::vector<Kind> kinds;
        for (const auto value : all)
            kinds.push_back({name_of(value), static_cast<std::size_t>(value)});
        return kinds;
    }
};

struct Findings {
    static constexpr std::size_t kMaxSentences = 10;
    static constexpr std::size_t kMaxKinds = 24;
    using Counts = std::array<std::uint64_t, kMaxKinds>;

    std::vector<std::string> violations;
    Counts faults{};
    Counts coverage{};
    std::uint64_t messages = 0;  ///< received whole
    std::uint64_t injected = 0;  ///< of the scenario's faults
    std::uint64_t events = 0;
    std::uint64_t hash = 0;  ///< of the trace, if it was asked for

    void violate(std::string sentence);
    template <class FaultKind>
    void met(FaultKind kind) {
        ++faults.at(static_cast<std::size_t>(kind));
    }
    template <class CoverageMark>
    void cover(CoverageMark mark, std::uint64_t n = 1) {
        coverage.at(static_cast<std::size_t>(mark)) += n;
    }
    Findings& operator+=(const Findings& other);
};

}  // namespace simulator
