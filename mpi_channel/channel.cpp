// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/channel.hpp"

#include <cstring>

namespace mpi_channel {

Channel::Channel(billboard::Endpoint& endpoint) : EndpointTransport(endpoint), in_(packet_most()) {}

int Channel::recv_any_control(Bytes* packet, unsigned* from) {
    const void* view = nullptr;
    const int result = take(packet, from, &view);
    if (result != BBP_OK || view == nullptr) return result;
    const bool fits = packet->size() <= in_.size();
    if (fits) {
        std::memcpy(in_.data(), view, packet->size());
        *packet = Bytes(in_).first(packet->size());
    }
    endpoint_.release(view);
    return fits ? BBP_OK : BBP_ESIZE;
}

bool Channel::control_msg_avail() {
    return endpoint_.available(BBP_ANY, billboard::Class::mpi) == 1;
}

}  // namespace mpi_channel
