// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The MPI channel's part of the environment.
///
///   RMEM_MPI_TRANSPORT   channel (default): through the channel interface, as the paper; billboard: without it
///
/// Errors: `rmem::Error` (bad_environment).

#include <cstdint>

namespace mpi_channel {

enum class TransportKind : std::uint8_t { channel, billboard };

struct Settings {
    TransportKind transport = TransportKind::channel;

    static Settings read();
};

}  // namespace mpi_channel
