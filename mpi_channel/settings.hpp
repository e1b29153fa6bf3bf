// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The MPI channel's part of the environment.
///
///   RMEM_MPI_TRANSPORT   channel (default): through the channel interface, as the paper; billboard: without it
///   RMEM_MPI_GET         from how many bytes on a message is read from its sender's memory, where that is possible; off: never
///
/// Errors: `rmem::Error` (bad_environment, bad_size).

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mpi_channel {

/// RMEM_MPI_GET, unless it is set (docs/measurements/mpi-2026-11-22.md).
inline constexpr std::size_t kGetLeast = 64 * 1024;
inline constexpr std::size_t kNoGets = std::numeric_limits<std::size_t>::max();

enum class TransportKind : std::uint8_t { channel, billboard };

struct Settings {
    TransportKind transport = TransportKind::channel;
    std::size_t get_least = kGetLeast;

    static Settings read();
};

}  // namespace mpi_channel
