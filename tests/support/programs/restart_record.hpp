// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The messages between the ranks of ring-restarts (ring_restarts.cpp) and the program that starts
/// them, in a mapping that is no part of the ring: the network may be cut, this is not.
///
/// Incarnations are numbered over all ranks, in the order in which they begin; 0: none.

#include <array>
#include <atomic>
#include <cstdint>

namespace rmem::test {

inline constexpr unsigned kMaxTestRanks = 16;

/// The phases of all, one after the other.
enum class Phase : std::uint32_t {
    talking,  ///< messages without end
    ending,   ///< a last one to everybody
    meeting,  ///< a barrier; then nobody writes any more
    leaving
};

/// Written by the rank alone.
struct RestartsOfRank {
    std::atomic<std::uint32_t> incarnation;  ///< the present one, once it is in the ring
    std::atomic<std::uint32_t> reopens;      ///< times it has lost its node and opened again
    std::atomic<std::uint32_t>
        done;  ///< the incarnation that has sent and received all last messages
    std::atomic<std::uint32_t> met;  ///< the incarnation that has come out of the barrier
    std::array<std::atomic<std::uint32_t>, kMaxTestRanks>
        heard;  ///< by its present incarnation: the incarnation of each
    std::array<std::atomic<std::uint32_t>, kMaxTestRanks>
        told;  ///< how often that each one has ended
    std::array<std::atomic<std::uint64_t>, kMaxTestRanks>
        received;  ///< messages of each, by all its incarnations

    std::uint64_t received_in_all() const {
        std::uint64_t sum = 0;
        for (const auto& of : received) sum += of;
        return sum;
    }
};

struct RestartRecord {
    std::atomic<std::uint32_t> incarnations;
    std::atomic<Phase> phase;
    std::array<RestartsOfRank, kMaxTestRanks> ranks;
};

}  // namespace rmem::test
