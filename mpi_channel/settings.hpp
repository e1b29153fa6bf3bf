// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The MPI channel's part of the environment: RMEM_MPI, a list of
///
///   transport=   channel (default): the channel interface on the billboard; fm: over Fast
///                Messages. All ranks have the same
///   get=         which messages are read from their sender's memory, where that is possible: of
///                this number of bytes or more (64K), of a range (64K-2M, the default over fm), or
///                off (the default over the channel)
///   collectives= which collective operations are multicasts: some of
///                barrier+bcast+reduce+allreduce+allgather; all (default); off. It is checked here,
///                and read in mpi_channel/collectives/calls.h
///
/// Errors: `rmem::Error` (bad_environment).

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mpi_channel {

inline constexpr std::size_t kNoGets = std::numeric_limits<std::size_t>::max();
/// What `get` is over fm, unless it is set: between these it is faster than bulk messages. The
/// channel's bulk is at least as fast (docs/measurements/archive/every-size-2026-11-27.md).
inline constexpr std::size_t kGetLeast = 64 * 1024, kGetMost = std::size_t{2} << 20;

/// The numbers are in the ranks' addresses; 1, 3 and 4 were others'.
enum class TransportKind : std::uint8_t { channel = 0, fm = 2 };

/// As in RMEM_MPI; of a number that no transport has, "of another version".
[[nodiscard]] const char* name_of(TransportKind kind) noexcept;

struct Settings {
    TransportKind transport = TransportKind::channel;
    std::size_t get_least = kNoGets, get_most = kNoGets;

    static Settings read();
};

}  // namespace mpi_channel
