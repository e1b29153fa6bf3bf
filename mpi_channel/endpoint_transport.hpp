// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What both transports on a billboard's endpoint have in common: all but how packets are received.
///
/// Contract: mpi_channel/transport.hpp. The endpoint outlives it.

#include "mpi_channel/bulk.hpp"
#include "mpi_channel/transport.hpp"

#include <array>

namespace mpi_channel {

class EndpointTransport {
public:
    using Bytes = std::span<const std::byte>;

    unsigned rank() const noexcept { return endpoint_.rank(); }
    unsigned ranks() const noexcept { return endpoint_.ranks(); }
    /// The longest packet, header and message together.
    std::size_t packet_most() const noexcept { return packet_most_; }

    /// What a rank's next call would meet: BBP_OK, BBP_EAGAIN: nothing waits, BBP_EPEER: nothing
    /// waits, and it is dead or has left.
    int ask_for(unsigned from) {
        const int result = endpoint_.probe(static_cast<int>(from), nullptr, billboard::Class::mpi);
        return result >= 0 ? BBP_OK : result;
    }

    // ---- Packets: a header, and what is behind it
    int send_control_block(Bytes header, Bytes message, unsigned to) {
        const int dest = static_cast<int>(to);
        const int result =
            endpoint_.send_joined({&dest, 1}, header, message, billboard::Class::mpi);
        if (result == BBP_OK) ++counters_.packets_sent;
        return result;
    }
    int mcast_control(Bytes header, Bytes message, std::span<const int> to) {
        const int result = endpoint_.send_joined(to, header, message, billboard::Class::mpi);
        if (result == BBP_OK) ++counters_.multicasts;
        return result;
    }

    // ---- Bulk (mpi_channel/bulk.hpp)
    int send_channel(Bytes bulk, unsigned to, std::size_t* sent) {
        return bulk_.send(bulk, to, sent);
    }
    void expect_bulk(unsigned from, std::size_t bytes) noexcept { bulk_.expect(from, bytes); }
    int recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size) {
        return bulk_.receive(room, from, size);
    }

    static constexpr bool has_backlog() noexcept { return false; }

    static constexpr bool kHasBarriers = true;
    /// The billboard's: BBP_EAGAIN until all of these ranks have come; call again.
    int barrier(std::span<const int> members, unsigned id) {
        return endpoint_.barrier_group(members, id, billboard::Deadline::now());
    }

    TransportCounters counters() const noexcept {
        TransportCounters counters = counters_;
        counters.bulk_sent = bulk_.pieces_sent();
        counters.bulk_received = bulk_.pieces_received();
        return counters;
    }

protected:
    explicit EndpointTransport(billboard::Endpoint& endpoint)
        : endpoint_(endpoint), bulk_(endpoint), packet_most_(packet_most_in(endpoint)) {}

    /// What has come next of anybody: kBulk, or BBP_OK: a packet, in `short_` or to be released as
    /// `*view`.
    int take(Bytes* packet, unsigned* from, const void** view) {
        if (const auto unread = bulk_.unread()) [[unlikely]] {
            *from = *unread;
            return kBulk;
        }
        const void* data = nullptr;
        std::size_t size = 0;
        const int source = endpoint_.take(short_.data(), &data, &size, billboard::Deadline::now(),
                                          billboard::Class::mpi);
        if (source < 0) return source;
        *from = static_cast<unsigned>(source);
        *packet = {static_cast<const std::byte*>(data), size};
        *view = data == short_.data() ? nullptr : data;
        if (bulk_.is_due(*from)) {
            bulk_.put(*from, *packet, *view);
            return kBulk;
        }
        ++counters_.packets_received;
        return BBP_OK;
    }

    billboard::Endpoint& endpoint_;
    Bulk bulk_;
    std::size_t packet_most_;
    std::array<std::byte, billboard::kInlineBytes> short_{};  ///< a packet that has come
    TransportCounters counters_;
};

}  // namespace mpi_channel
