// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/billboard_transport.hpp"

#include "rmem/copy.hpp"

#include <cstring>

namespace mpi_channel {

namespace {

using billboard::Class;
using billboard::Deadline;

using Packet = std::array<std::byte, billboard::kInlineBytes>;

/// Of both together no more than that.
Packet join(std::span<const std::byte> header, std::span<const std::byte> message) {
    Packet packet;
    rmem::copy_short(packet.data(), header.data(), header.size());
    rmem::copy_short(packet.data() + header.size(), message.data(), message.size());
    return packet;
}

}  // namespace

int BillboardTransport::send_control_block(Bytes header, Bytes message, unsigned to) {
    const std::size_t size = header.size() + message.size();
    const int dest = static_cast<int>(to);
    int result = BBP_OK;
    if (size <= billboard::kInlineBytes) {
        const Packet packet = join(header, message);
        result = endpoint_.send(dest, packet.data(), size, Deadline::now(), Class::mpi);
    } else {
        result = post(header, message, {&dest, 1});
    }
    if (result == BBP_OK) ++counters_.packets_sent;
    return result;
}

int BillboardTransport::mcast_control(Bytes header, Bytes message, std::span<const int> to) {
    const std::size_t size = header.size() + message.size();
    int result = BBP_OK;
    if (size <= billboard::kInlineBytes) {
        const Packet packet = join(header, message);
        result = endpoint_.mcast(to, packet.data(), size, Deadline::now(), Class::mpi);
    } else {
        result = post(header, message, to);
    }
    if (result == BBP_OK) ++counters_.multicasts;
    return result;
}

int BillboardTransport::post(Bytes header, Bytes message, std::span<const int> to) {
    const std::size_t size = header.size() + message.size();
    void* room = nullptr;
    if (const int result = endpoint_.compose(size, &room); result != BBP_OK) return result;
    std::memcpy(room, header.data(), header.size());
    if (!message.empty())
        std::memcpy(static_cast<std::byte*>(room) + header.size(), message.data(), message.size());
    const int result = endpoint_.post(to, room, size, Deadline::now(), Class::mpi);
    if (result == BBP_EAGAIN) endpoint_.discard(room);
    return result;
}

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
