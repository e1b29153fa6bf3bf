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

BillboardTransport::BillboardTransport(billboard::Endpoint& endpoint)
    : endpoint_(endpoint), bulk_(endpoint), packet_most_(packet_most_in(endpoint)) {}

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
    if (const auto unread = bulk_.unread()) [[unlikely]] {
        *from = *unread;
        return kBulk;
    }
    const void* data = nullptr;
    std::size_t size = 0;
    const int source = endpoint_.take(short_.data(), &data, &size, Class::mpi);
    if (source < 0) return source;
    *from = static_cast<unsigned>(source);
    const Bytes come{static_cast<const std::byte*>(data), size};
    const void* const view = data == short_.data() ? nullptr : data;
    if (bulk_.is_due(*from)) {
        bulk_.put(*from, come, view);
        return kBulk;
    }
    ++counters_.packets_received;
    view_ = view;
    *packet = come;
    return size <= packet_most_ ? BBP_OK : BBP_ESIZE;
}

void BillboardTransport::release() {
    if (view_ != nullptr) endpoint_.release(view_);
    view_ = nullptr;
}

int BillboardTransport::ask_for(unsigned from) {
    const int result = endpoint_.probe(static_cast<int>(from), nullptr, Class::mpi);
    return result >= 0 ? BBP_OK : result;
}

TransportCounters BillboardTransport::counters() const noexcept {
    TransportCounters counters = counters_;
    counters.bulk_sent = bulk_.pieces_sent();
    counters.bulk_received = bulk_.pieces_received();
    return counters;
}

}  // namespace mpi_channel
