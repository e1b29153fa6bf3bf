// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A run: the litmuses one after the other at all members, and what comes of their findings.
///
/// Only [at, at + needed_bytes) of the memory is touched, so that a run can stand beside a rig.
///
/// Invariants, executed: litmuses lie one behind the other in the range; the own
/// finding's counterexample is one that the litmus has a sentence for.
/// Thread safety: one thread. Units: bytes, nanoseconds.
/// Errors: Error(bad_size) where the range is too short or beyond the memory, and what the card and
///   the members throw.

#include "tools/conform/litmus.hpp"

#include <functional>
#include <string>
#include <vector>

namespace tools::conform {

inline constexpr unsigned kMaxMembers = 64;
inline constexpr unsigned kMaxRounds = 30'000;  ///< small words count them (members.hpp)

struct Plan {
    unsigned member = 0, members = 2;
    std::size_t at = 0;
    std::size_t bytes = 0;  ///< that may be used; 0: as many as are needed
    unsigned rounds = 2'000;
    std::int64_t floor_ns = 0;  ///< the least time of a word; 0: not known
    bool whole_words = false;   ///< the ring's cards send no single bytes
    std::int64_t patience_ns = 30'000'000'000;
    std::vector<std::string> only{};  ///< names; empty: all
};

enum class Outcome {
    holds,
    broken,
    not_offered,  ///< the card has no such thing
    undecided,    ///< too few observations
    measured,     ///< times, and no floor to compare them with
};
const char* name_of(Outcome outcome) noexcept;

struct Result {
    const Litmus* litmus;
    std::size_t at;                 ///< its place
    std::vector<Finding> findings;  ///< by member
    Outcome outcome;

    std::uint64_t observations() const noexcept;
};

std::size_t bytes_of_litmuses(unsigned members) noexcept;
/// With what the card's interrupts take.
std::size_t needed_bytes(const Card& card, unsigned members);

/// The same at all members. `begun`: called when member 0 has greeted, or another one has looked.
std::vector<Result> run_litmuses(Card& card, const Plan& plan,
                                 const std::function<void()>& begun = {});

}  // namespace tools::conform
