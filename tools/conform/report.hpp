// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a run has found: for people and for programs.
/// Invariant, executed: a rule that is broken has a member that has seen it.
/// Thread safety: functions of their arguments.

#include "tools/conform/run.hpp"
#include "tools/json.hpp"

#include <string>
#include <vector>

namespace tools::conform {

/// Of a card, as it names itself.
struct Report {
    std::string card;
    Plan plan;
    std::size_t bytes;  ///< of the memory, that were used
    std::vector<Result> results;

    bool is_broken() const noexcept;
    /// "3 members: 11 rules hold, 1 broken (order)"
    std::string verdict() const;
    /// The verdict, a table of the rules, counterexamples, times, and what was noted besides.
    std::string text() const;
    nlohmann::json json() const;
};

}  // namespace tools::conform
