// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/fm/fm_device.hpp"

namespace mpi_channel {

template class Device<FmTransport>;

std::unique_ptr<DeviceInterface> make_device(FmTransport& transport, Completions& completions) {
    return std::make_unique<Device<FmTransport>>(transport, completions);
}

}  // namespace mpi_channel
