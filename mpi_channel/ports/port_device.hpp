// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The MPI device over a port: what the provider knows of mpi_channel/ports.
///
/// Contract: mpi_channel/device/device.hpp, mpi_channel/ports/port_transport.hpp.

#include "mpi_channel/device/device.hpp"
#include "mpi_channel/ports/port_transport.hpp"

#include <memory>

namespace mpi_channel {

[[nodiscard]] std::unique_ptr<DeviceInterface> make_device(PortTransport& transport,
                                                           Completions& completions);

}  // namespace mpi_channel
