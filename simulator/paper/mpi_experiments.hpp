// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The paper's measurements with its MPI, repeated in a simulated world (simulator/paper/mpi.hpp);
/// and the other networks that it drew beside it, as far as it prints their times.
///
/// Units: picoseconds; bytes. Means over the phases between sender and poll, as in
/// simulator/paper/experiments.hpp.
/// Errors and thread safety: simulator/paper/worlds.hpp.

#include "simulator/paper/mpi.hpp"

#include <cstddef>
#include <cstdint>

namespace simulator {

enum class BroadcastKind : std::uint8_t { tree, multicast };

/// Half a round trip between ranks 0 and 1.
std::int64_t mpi_one_way_ps(const Testbed& testbed, std::size_t bytes, const MpiHost& host = {});

/// From the call of MPI_Bcast by rank 0 until it has returned at the last of all others, which are
/// waiting.
std::int64_t mpi_broadcast_ps(const Testbed& testbed, std::size_t bytes, BroadcastKind kind,
                              const MpiHost& host = {});

/// One of many MPI_Barriers by messages of all ranks, one after the other.
std::int64_t mpi_barrier_ps(const Testbed& testbed, const MpiHost& host = {});

/// MPICH over TCP on another network: a message takes a constant and a time for each byte. The
/// constant is what the paper prints of an MPI_Barrier of three nodes there, by three: that many
/// messages follow one another in it. The bytes are at the rate of the wire alone.
struct OtherNetwork {
    std::int64_t barrier_ps;   ///< printed
    std::int64_t ps_per_byte;  ///< of the wire

    std::int64_t one_way_ps(std::size_t bytes) const noexcept {
        return barrier_ps / 3 + static_cast<std::int64_t>(bytes) * ps_per_byte;
    }
    /// To four nodes along a tree: two messages follow one another.
    std::int64_t broadcast_ps(std::size_t bytes) const noexcept { return 2 * one_way_ps(bytes); }
};
/// 100 Mbit/s, once over the wire.
inline constexpr OtherNetwork kFastEthernet{554'000'000, 80'000};
/// 155.52 Mbit/s less SONET's share, 149.76; 48 of a cell's 53 bytes are data. The paper does not
/// say which ATM it had; this was the common one.
inline constexpr OtherNetwork kAtm{660'000'000, 58'983};

/// The sizes from which the other network is faster; `most` if it is at none below.
std::size_t one_way_crossing(const OtherNetwork& other, std::size_t most);
std::size_t broadcast_crossing(const OtherNetwork& other, BroadcastKind kind, std::size_t most);

}  // namespace simulator
