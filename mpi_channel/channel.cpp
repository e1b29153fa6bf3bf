// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/channel.hpp"

#include "billboard/core/answer_pause.hpp"

#include <cstdint>
#include <utility>

namespace mpi_channel {

using billboard::Class;
using billboard::Deadline;

namespace {

/// With the way from one poll to the next, as long as an answer through MPI takes to be written
/// where hops are long.
constexpr std::int64_t kMostPauseNs = 200;

}  // namespace

Channel::Channel(billboard::Endpoint& endpoint)
    : endpoint_(endpoint),
      bulk_(endpoint),
      packet_most_(packet_most_in(endpoint)),
      pause_(billboard::AnswerPause::pauses_of(kMostPauseNs)) {}

int Channel::recv_any_control(Bytes* packet, unsigned* from) {
    if (view_ != nullptr) [[unlikely]]
        release();
    if (const auto unread = bulk_.unread()) [[unlikely]] {
        *from = *unread;
        return kBulk;
    }
    const void* data = nullptr;
    std::size_t size = 0;
    for (unsigned n = pause_.before_poll(); n > 0; --n) rmem::cpu_relax();
    const int source = endpoint_.take(short_, &data, &size, Deadline::now(), Class::mpi);
    if (source < 0) {
        pause_.found_nothing();
        return source;
    }
    pause_.found();
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
