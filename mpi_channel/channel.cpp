// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/channel.hpp"

#include <utility>

namespace mpi_channel {

using billboard::Class;
using billboard::Deadline;

Channel::Channel(billboard::Endpoint& endpoint)
    : endpoint_(endpoint), bulk_(endpoint), packet_most_(packet_most_in(endpoint)) {}

int Channel::recv_any_control(Bytes* packet, unsigned* from) {
    if (view_ != nullptr) [[unlikely]]
        release();
    if (const auto unread = bulk_.unread()) [[unlikely]] {
        *from = *unread;
        return kBulk;
    }
    const void* data = nullptr;
    std::size_t size = 0;
    const std::int64_t began = pause_.before_poll();
    const int source = endpoint_.take(short_, &data, &size, Deadline::now(), Class::mpi);
    pause_.after_poll(source, began);
    if (source < 0) return source;
    *from = static_cast<unsigned>(source);
    *packet = {static_cast<const std::byte*>(data), size};
    const bool is_view = data != short_.data();
    if (bulk_.is_due(*from)) {
        bulk_.put(*from, *packet, is_view ? data : nullptr);
        return kBulk;
    }
    ++counters_.packets_received;
    if (!is_view) return BBP_OK;
    view_ = data;
    return size <= packet_most_ ? BBP_OK : BBP_ESIZE;
}

bool Channel::control_msg_avail() {
    return endpoint_.available(BBP_ANY, Class::mpi) == 1;
}

void Channel::release() {
    if (const void* view = std::exchange(view_, nullptr)) endpoint_.release(view);
}

TransportCounters Channel::counters() const noexcept {
    TransportCounters counters = counters_;
    counters.bulk_sent = bulk_.pieces_sent();
    counters.bulk_received = bulk_.pieces_received();
    return counters;
}

}  // namespace mpi_channel
