// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/device.hpp"

#include "mpi_channel/channel.hpp"

namespace mpi_channel {

template class Device<Channel>;

}  // namespace mpi_channel
