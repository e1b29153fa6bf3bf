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
    : endpoint_(endpoint),
      bulk_(endpoint),
      in_(packet_most_in(endpoint)),
      out_(packet_most_in(endpoint)) {}

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
    if (const auto unread = bulk_.unread()) [[unlikely]] {
        *from = *unread;
        return kBulk;
    }
    const void* data = nullptr;
    std::size_t size = 0;
    const int source = endpoint_.take(short_in_.data(), &data, &size, Class::mpi);
    if (source < 0) return source;
    *from = static_cast<unsigned>(source);
    const Bytes come{static_cast<const std::byte*>(data), size};
    const bool is_short = data == short_in_.data();
    if (bulk_.is_due(*from)) {
        bulk_.put(*from, come, is_short ? nullptr : data);
        return kBulk;
    }
    *packet = come;
    ++counters_.packets_received;
    if (is_short) return BBP_OK;
    if (size <= in_.size()) {
        std::memcpy(in_.data(), data, size);
        *packet = Bytes(in_).first(size);
    }
    endpoint_.release(data);
    return size <= in_.size() ? BBP_OK : BBP_ESIZE;
}

bool Channel::control_msg_avail() {
    return endpoint_.available(BBP_ANY, Class::mpi) == 1;
}

int Channel::ask_for(unsigned from) {
    const int result = endpoint_.probe(static_cast<int>(from), nullptr, Class::mpi);
    return result >= 0 ? BBP_OK : result;
}

TransportCounters Channel::counters() const noexcept {
    TransportCounters counters = counters_;
    counters.bulk_sent = bulk_.pieces_sent();
    counters.bulk_received = bulk_.pieces_received();
    return counters;
}

}  // namespace mpi_channel
