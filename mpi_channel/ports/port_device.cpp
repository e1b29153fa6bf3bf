// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/ports/port_device.hpp"

#include "mpi_channel/ports/ports.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>

namespace mpi_channel {

template class Device<PortTransport>;

std::unique_ptr<DeviceInterface> make_device(PortTransport& transport, Completions& completions) {
    return std::make_unique<Device<PortTransport>>(transport, completions);
}

std::unique_ptr<Port> open_port(TransportKind kind, billboard::ProcessEndpoint& process) {
    switch (kind) {
        case TransportKind::fm: return open_fm_port(process);
        case TransportKind::gamma: return open_gamma_port(process);
        case TransportKind::dp: return open_dp_port(process);
        default: break;
    }
    throw rmem::Error(
        rmem::Errc::bad_environment,
        fmt::format("RMEM_MPI_TRANSPORT is '{}', which is no port; give fm, gamma or dp",
                    name_of(kind)));
}

}  // namespace mpi_channel
