// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/channel.hpp"

#include "rmem/copy.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace mpi_channel {

namespace {

using billboard::Class;
using billboard::Deadline;

}  // namespace

Channel::Channel(billboard::Endpoint& endpoint)
    : EndpointTransport(endpoint), in_(packet_most()), out_(packet_most()) {}

// ---- Packets

int Channel::send_control_block(Bytes header, Bytes message, unsigned to) {
    const Bytes packet = joined(header, message);
    const int result = endpoint_.send(static_cast<int>(to), packet.data(), packet.size(),
                                      Deadline::now(), Class::mpi);
    if (result == BBP_OK) ++counters_.packets_sent;
    return result;
}

int Channel::mcast_control(Bytes header, Bytes message, std::span<const int> to) {
    const Bytes packet = joined(header, message);
    const int result =
        endpoint_.mcast(to, packet.data(), packet.size(), Deadline::now(), Class::mpi);
    if (result == BBP_OK) ++counters_.multicasts;
    return result;
}

Channel::Bytes Channel::joined(Bytes header, Bytes message) {
    if (message.empty()) return header;
    assert(header.size() <= rmem::kShortBytes && header.size() + message.size() <= out_.size());
    rmem::copy_short(out_.data(), header.data(), header.size());
    rmem::copy_bytes(out_.data() + header.size(), message.data(), message.size());
    return Bytes(out_).first(header.size() + message.size());
}

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
    return endpoint_.available(BBP_ANY, Class::mpi) == 1;
}

}  // namespace mpi_channel
