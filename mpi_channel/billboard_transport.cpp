// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/billboard_transport.hpp"

namespace mpi_channel {

int BillboardTransport::recv_any_control(Bytes* packet, unsigned* from) {
    release();
    const void* view = nullptr;
    const int result = take(packet, from, &view);
    if (result != BBP_OK) return result;
    view_ = view;
    return packet->size() <= packet_most() ? BBP_OK : BBP_ESIZE;
}

void BillboardTransport::release() {
    if (view_ != nullptr) endpoint_.release(view_);
    view_ = nullptr;
}

}  // namespace mpi_channel
