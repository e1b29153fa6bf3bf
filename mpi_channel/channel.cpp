// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/channel.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace mpi_channel {

namespace {

using billboard::Class;
using billboard::Deadline;

/// So many packets fit a partition while their receivers are away.
constexpr std::size_t kPacketsInPartition = 16;
/// A piece is on its way while the next one is copied.
constexpr std::size_t kPiecesInPartition = 4;
constexpr std::size_t kMostPacket = 16 * 1024, kMostPiece = 256 * 1024;

}  // namespace

Channel::Channel(billboard::Endpoint& endpoint)
    : endpoint_(endpoint),
      packet_most_(std::min(endpoint.partition_bytes() / kPacketsInPartition, kMostPacket)),
      piece_most_(std::min(endpoint.partition_bytes() / kPiecesInPartition, kMostPiece)),
      out_(packet_most_),
      in_(packet_most_),
      bulk_due_(endpoint.ranks()),
      pieces_(endpoint.ranks()) {}

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
    assert(header.size() + message.size() <= packet_most_);
    std::memcpy(out_.data(), header.data(), header.size());
    std::memcpy(out_.data() + header.size(), message.data(), message.size());
    return Bytes(out_).first(header.size() + message.size());
}

int Channel::recv_any_control(Bytes* packet, unsigned* from) {
    const int source = endpoint_.probe(BBP_ANY, nullptr, Class::mpi);
    if (source < 0) return source;
    *from = static_cast<unsigned>(source);
    if (bulk_due_[*from] != 0) return kBulk;
    std::size_t size = 0;
    const int result =
        endpoint_.recv(source, in_.data(), in_.size(), &size, Deadline::now(), Class::mpi);
    if (result < 0) return result;
    ++counters_.packets_received;
    *packet = Bytes(in_).first(size);
    return BBP_OK;
}

bool Channel::control_msg_avail() {
    return endpoint_.available(BBP_ANY, Class::mpi) == 1;
}

int Channel::ask_for(unsigned from) {
    const int result = endpoint_.probe(static_cast<int>(from), nullptr, Class::mpi);
    return result >= 0 ? BBP_OK : result;
}

// ---- Bulk

int Channel::send_channel(Bytes bulk, unsigned to, std::size_t* sent) {
    *sent = 0;
    while (!bulk.empty()) {
        const Bytes piece = bulk.first(std::min(bulk.size(), piece_most_));
        const int result = endpoint_.send(static_cast<int>(to), piece.data(), piece.size(),
                                          Deadline::now(), Class::mpi);
        if (result == BBP_EAGAIN && *sent != 0) return BBP_OK;
        if (result != BBP_OK) return result;
        ++counters_.bulk_sent;
        *sent += piece.size();
        bulk = bulk.subspan(piece.size());
    }
    return BBP_OK;
}

int Channel::recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size) {
    Piece& piece = pieces_[from];
    if (piece.view == nullptr) {
        std::size_t length = 0;
        const int result = endpoint_.view(static_cast<int>(from), &piece.view, &length,
                                          Deadline::now(), Class::mpi);
        if (result < 0) return result;
        ++counters_.bulk_received;
        piece.bytes = {static_cast<const std::byte*>(piece.view), length};
    }
    *size = std::min({room.size(), piece.bytes.size(), bulk_due_[from]});
    if (*size != 0) std::memcpy(room.data(), piece.bytes.data(), *size);
    piece.bytes = piece.bytes.subspan(*size);
    bulk_due_[from] -= *size;
    // What is longer than was announced is nobody's.
    if (piece.bytes.empty() || bulk_due_[from] == 0) {
        endpoint_.release(piece.view);
        piece = {};
    }
    return BBP_OK;
}

}  // namespace mpi_channel
