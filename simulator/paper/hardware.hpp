// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The known figures of the ring itself, measured on simulated cards. Nothing here is fitted: the
/// timing profile has the manual's 247 ns, 150 Mbit/s and 615 ns a word, the rest follows.
///
/// Units: nanoseconds, bytes per second. Errors and thread safety: simulator/paper/worlds.hpp.

#include <cstddef>
#include <cstdint>
#include <string>

namespace simulator {

/// The time from a node's memory to its successor's, of a word that passes.
struct HopTimes {
    std::int64_t least_ns = 0;    ///< on an idle ring
    std::int64_t longest_ns = 0;  ///< while the node sends a write of its own, at the worst moment
};
HopTimes hop_times(const std::string& timing, std::size_t own_bytes);

/// Of one of `nodes` nodes of a ring that all store words one after the other, as fast as the bus
/// of the paper's hosts takes them; counted where they arrive. At most 8 nodes.
std::int64_t throughput(const std::string& timing, unsigned transmitters);

/// How many nodes a ring can have at most; a word that one of them writes reaches all others.
unsigned largest_ring(const std::string& timing);

}  // namespace simulator
