// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The MPI channel's part of the environment.
///
///   RMEM_MPI_TRANSPORT   channel (default): the channel interface on the billboard; fm, gamma, dp:
///                        the channel interface over Fast Messages, GAMMA or Directed Point. All
///                        ranks have the same
///   RMEM_MPI_GET         which messages are read from their sender's memory, where that is
///                        possible: of this number of bytes or more (16K), of a range (16K-2M, the
///                        default), or off
///   RMEM_MPI_COLLECTIVES which collective operations are multicasts: a list of barrier, bcast,
///                        reduce, allreduce, allgather; all (default); off. It is checked here, and
///                        read in mpi_channel/collectives/calls.h
///   RMEM_MPI_LOCK        1: calls of several threads may meet, whatever the MPI says
///                        (mpi_channel/collectives/mpich.c sets it)
///
/// Any other RMEM_MPI_… is an error.
///
/// Errors: `rmem::Error` (bad_environment, bad_size).

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mpi_channel {

/// RMEM_MPI_GET, unless it is set: between these it is faster than bulk
/// (docs/measurements/archive/mpi-2026-11-22.md).
inline constexpr std::size_t kGetLeast = 16 * 1024, kGetMost = std::size_t{2} << 20;
inline constexpr std::size_t kNoGets = std::numeric_limits<std::size_t>::max();

/// The numbers are in the ranks' addresses; 1 was another one's.
enum class TransportKind : std::uint8_t { channel = 0, fm = 2, gamma = 3, dp = 4 };

/// As in RMEM_MPI_TRANSPORT; of a number that no transport has, "of another version".
[[nodiscard]] const char* name_of(TransportKind kind) noexcept;

struct Settings {
    TransportKind transport = TransportKind::channel;
    std::size_t get_least = kGetLeast, get_most = kGetMost;
    bool locks = false;

    static Settings read();
};

}  // namespace mpi_channel
