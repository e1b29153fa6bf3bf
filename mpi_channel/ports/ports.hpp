// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ports that there are, opened: GAMMA's waits for the other ranks. Throw `rmem::Error`.
/// Contract, thread safety: mpi_channel/ports/port.hpp. The process endpoint outlives them.

#include "mpi_channel/ports/port.hpp"

namespace mpi_channel {

[[nodiscard]] std::unique_ptr<Port> open_fm_port(billboard::ProcessEndpoint& process);
[[nodiscard]] std::unique_ptr<Port> open_gamma_port(billboard::ProcessEndpoint& process);
[[nodiscard]] std::unique_ptr<Port> open_dp_port(billboard::ProcessEndpoint& process);

}  // namespace mpi_channel
