// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How multicast and barrier grow, from 2 to 256 nodes on one ring and to 4096 on hierarchies of
/// rings.
///
/// Two ways, on the paper's hosts: by the billboard (layout of the paper), which has at most 256
/// ranks, and by bare words, which any number of nodes can: each has a word of its own that all
/// others wait for.
///
/// Units: picoseconds. Errors and thread safety: simulator/paper/worlds.hpp.

#include "simulator/paper/worlds.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simulator {

/// Nodes, as one ring or as rings of equal size that a ring of bridges joins; and the ranks on
/// them.
struct Place {
    unsigned rings = 1;
    unsigned nodes_per_ring = 2;
    unsigned ranks = 2;  ///< of the billboard, spread evenly

    unsigned nodes() const noexcept { return rings * nodes_per_ring; }
};

struct ScalePoint {
    Place place;
    std::int64_t multicast_ps = 0;     ///< bbp_mcast of 4 bytes from rank 0 to all ranks
    std::int64_t barrier_ps = 0;       ///< bbp_barrier as in the paper
    std::int64_t word_ps = 0;          ///< a word from one node until the last of all has loaded it
    std::int64_t word_barrier_ps = 0;  ///< all store a word and load all others', as bbp_barrier
                                       ///< does by arrival words
};

/// From small to large; up to `most_nodes` nodes.
std::vector<Place> places_to_measure(unsigned most_nodes);
ScalePoint measure(const Place& place);

/// How many ranks' partitions of the paper's layout fit into a card's memory, each with this many
/// bytes of data; the library itself has at most rmem::kMaxRanks.
unsigned most_ranks(std::size_t memory_bytes, std::size_t data_bytes);

}  // namespace simulator
