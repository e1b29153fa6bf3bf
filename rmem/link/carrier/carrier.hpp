// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What carries a node's datagrams to the other nodes, and theirs to it: a UDP socket
/// (rmem/link/udp/socket.hpp), or an endpoint of a fabric (rmem/link/fabric/endpoint.hpp).
///
/// Sending never waits. A carrier may lose, copy and mix up datagrams: the protocol mends it. One
/// that keeps them itself says so (`is_reliable`), and is then asked for less.
///
/// Threads: one user at a time; handle() from any thread at any time. Progress: no call waits;
/// after construction nothing throws.
/// Trust: what is received is anybody's bytes. Where they came from is for people.

#include "rmem/base/time.hpp"
#include "rmem/error.hpp"
#include "rmem/link/carrier/endpoints.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rmem::udp {

/// In datagrams; one to several nodes, each by itself, counts for each.
struct CarrierCounters {
    std::uint64_t sent = 0;
    std::uint64_t no_room = 0;  ///< not sent: the host's or the provider's buffers were full
    std::uint64_t refused = 0;  ///< not sent: a firewall, no route, the other end is gone
    std::uint64_t received = 0;
    std::uint64_t oversized = 0;       ///< of those received: longer than kMaxPayload
    std::uint64_t receive_errors = 0;  ///< calls that failed
    int last_error = 0;                ///< errno of the last that was refused or failed
};

class Carrier {
public:
    static constexpr std::size_t kMaxInBatch = 16;
    static constexpr std::size_t kMaxBytesInBatch = 65'507;  ///< in one piece over IPv4

    Carrier() = default;
    virtual ~Carrier() = default;
    Carrier(const Carrier&) = delete;
    Carrier& operator=(const Carrier&) = delete;

    // ---- Sending. Datagrams have at most kMaxPayload bytes. What is queued leaves before what is
    // sent.
    /// To all other nodes, now. False if it was not sent to each.
    virtual bool send(std::span<const std::byte> datagram) noexcept = 0;
    /// To all other nodes with the next flush(), or when kMaxInBatch are queued. Until then the
    /// bytes stay where they are.
    virtual void queue(std::span<const std::byte> datagram) noexcept = 0;
    /// Returns how many of those still queued were not sent, counted for each node where each gets
    /// it by itself.
    virtual std::size_t flush() noexcept = 0;
    /// To the nodes with this node's number, if any, where they may hear it.
    virtual void send_to_namesakes(std::span<const std::byte> datagram) noexcept = 0;

    // ---- Receiving
    using Datagrams = std::span<const std::span<std::byte>>;
    /// Some of those that are here, in the order in which they came; none: nothing is here. What is
    /// no datagram can be longer than kMaxPayload. They are the caller's until the next call.
    virtual Datagrams receive() noexcept = 0;
    /// One of those that receive() gave last is the ring's, authentic and new.
    virtual void has_taken(std::span<const std::byte>) noexcept {}
    /// To be polled together with others.
    virtual int handle() const noexcept = 0;
    /// Whether a thread may sleep on handle() from now on: nothing is here already. Asked by the
    /// user of the rest.
    [[nodiscard]] virtual bool may_sleep() noexcept { return true; }
    /// When receive() is to be called although nothing came; kNever: it need not.
    virtual std::int64_t due_ns() const noexcept { return kNever; }

    /// From now on it is found out where datagrams come from, or not any more: it takes its time.
    virtual void ask_for_senders(bool on) noexcept = 0;
    virtual bool asks_for_senders() const noexcept = 0;
    /// Of the datagram at that place among those that receive() gave; 0: not known.
    virtual Ip sender(std::size_t place) const noexcept = 0;

    // ---- What is known of it
    virtual const CarrierCounters& counters() const noexcept = 0;
    /// Datagrams that came, and were thrown away because there was no room.
    virtual std::uint64_t overflowed() const noexcept = 0;
    /// Bytes of datagrams that it holds until they are received, by bytes_charged().
    virtual std::uint32_t bytes_held() const noexcept = 0;
    /// What to do about little room for these; empty: nothing.
    virtual std::string buffer_advice() const = 0;
    /// Looks after itself, now and then; `is_refused`: it did not help, or nothing leaves. The
    /// sentence why other nodes are not reached, as far as it knows one; empty: nothing is wrong.
    [[nodiscard]] virtual std::string mend(bool /*is_refused*/) noexcept { return ""; }
    /// Whether the program has left it its descriptors (rmem/base/descriptor.hpp).
    virtual bool is_ours() const noexcept { return true; }
    /// Whether what it has taken arrives, once and in order, unless a connection breaks.
    virtual bool is_reliable() const noexcept { return false; }
};

}  // namespace rmem::udp
