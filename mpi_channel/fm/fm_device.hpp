// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The MPI device over Fast Messages: what the provider knows of mpi_channel/fm.
///
/// Contract, invariants: mpi_channel/device/device.hpp, mpi_channel/fm/fm_transport.hpp. Both
/// arguments outlive the device.
/// Thread safety: one thread at a time. Errors: std::bad_alloc.

#include "mpi_channel/device/device.hpp"
#include "mpi_channel/fm/fm_transport.hpp"

#include <memory>

namespace mpi_channel {

[[nodiscard]] std::unique_ptr<DeviceInterface> make_device(FmTransport& transport,
                                                           Completions& completions);

}  // namespace mpi_channel
