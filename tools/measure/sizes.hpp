// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages of every size in every rhythm, between two ranks and among many.
///
///   pingpong, stream, burst-N, fan-in, fan-out, all-to-all   those of rhythms.hpp
///   window       a stream of 64, each time
///
/// The floor of a pingpong is a cache line to and fro, that of a stream memcpy of the size.
///
/// Method: for each size all rhythms in turn, round by round, so that a change of the machine's
/// speed meets the sizes' neighbours and the floors alike.
/// Invariants, executed: there are sizes, rhythms and rounds to be measured.
/// Units: bytes; nanoseconds. Errors: as rank_group.hpp.

#include "tools/measure/rank_group.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace tools {

inline constexpr unsigned kWindow = 64;

struct SizesPlan {
    std::vector<std::size_t> sizes;
    std::vector<std::string> rhythms;  ///< of the above
    std::size_t rounds = 30;
    std::size_t most_in_round = 256;  ///< messages; as many fewer as they are longer
};

/// Powers of two up to `most`, and those beside each step in the way that messages take.
std::vector<std::size_t> usual_sizes(std::size_t most);
std::vector<std::string> rhythms_of(unsigned ranks);

/// Series are named "size: rhythm", and the floors "size: hop" and "size: memcpy".
void measure_sizes(const GroupOptions& options, const SizesPlan& plan, Results& results);

}  // namespace tools
