// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Messages of every size in every rhythm, between two ranks and among many.
///
///   pingpong     one way: half of a round trip; floor: a cache line to and fro
///   stream       a message of many one after the other, of which the last is answered; floor:
///                memcpy of that size
///   window       the same of 64, each time
///   burst-N      N messages after a pause: from the first one's arrival to the last one's
///   fan-in       a message at rank 0, which takes from BBP_ANY what all others send
///   fan-out      a multicast to all others, of which the last is answered by each
///   all-to-all   each rank sends one to each other one and receives theirs
///
/// Method: for each size all rhythms in turn, round by round, so that a change of the machine's
/// speed meets the sizes' neighbours and the floors alike.
/// Units: bytes; nanoseconds. Errors: as rank_group.hpp.

#include "tools/measure/rank_group.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

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

}  // namespace bench
