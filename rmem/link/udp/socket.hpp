// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's socket: datagrams to all other nodes of the ring, and from them.
///
/// With multicast a datagram is sent once, to the node's group (rmem/link/carrier/endpoints.hpp).
/// Own ones come back, and take time and room in the own receive buffer, only where another node
/// speaks in the same group. With an address for each node (fan-out) it is sent to each other node
/// by itself.
///
/// Sending never waits: what the host has no room for, or refuses, is not sent, and counted; the
/// protocol retransmits it as after any loss. Nodes that are absent do not disturb: the socket is
/// not connected and asks for no reports, so the host keeps their ICMP errors to itself.
/// Receiving takes what came first with a plain call, and as soon as several in a row were waiting,
/// up to kMaxInBatch with one call.
///
/// Datagrams of one length that are sent together are a GSO batch: the host gets them in one piece
/// and cuts it as late as it can (UDP_SEGMENT), for nodes on one host never: their sockets take the
/// piece as it is (UDP_GRO). It is cut here by the lengths that the datagrams say themselves, since
/// asking the host for them costs each plain call 0.1 us more. Where the host knows no GSO, each
/// goes for itself.
///
/// Threads, besides Carrier's: wait() and handle() may be called by any thread at any time. A
/// process forked off has no socket. Progress: no call but wait() waits; after construction nothing
/// is allocated.
/// Errors: the constructor throws `Error`, whose sentence names the variable to change; later
/// nothing throws.
/// Trust: what is received is anybody's bytes. Where they came from is for people.

#include "rmem/base/clock.hpp"
#include "rmem/error.hpp"
#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/carrier/endpoints.hpp"
#include "rmem/link/udp/make_socket.hpp"
#include "rmem/link/udp/protocol/format.hpp"
#include "rmem/ring/segment.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rmem::udp {

class RMEM_API Socket final : public Carrier {
public:
    static constexpr std::size_t kMaxInGsoBatch = 64;  ///< that the host hands out in one piece

    /// Joins the others' groups, or binds the node's own address.
    explicit Socket(const SocketSettings& settings);

    bool send(std::span<const std::byte> datagram) noexcept override;
    /// To one other node, now; in a group all hear it.
    bool send_to(unsigned node, std::span<const std::byte> datagram) noexcept;
    void queue(std::span<const std::byte> datagram) noexcept override;
    std::size_t flush() noexcept override { return queued_ == 0 ? 0 : send_queued(); }
    /// Those that speak in this node's group hear another one. Not by fan-out, where a number is an
    /// address.
    void send_to_namesakes(std::span<const std::byte> datagram) noexcept override;

    Datagrams receive() noexcept override;
    /// Waits until something can be received; false if the deadline comes first, or a signal. The
    /// host may wake a thread later than asked by its timer slack, usually 50 us.
    bool wait(Deadline deadline) const noexcept;
    int handle() const noexcept override { return socket_.get(); }
    /// Speaks and hears elsewhere, where the interface has another address now, was made again, or
    /// the host's routes name another one.
    std::string mend(bool is_refused) noexcept override;
    bool is_ours() const noexcept override;

    void ask_for_senders(bool on) noexcept override;
    bool asks_for_senders() const noexcept override { return asks_for_senders_; }
    Ip sender(std::size_t place) const noexcept override {
        return asks_for_senders_ && place < from_.size() ? from_[place] : 0;
    }

    const CarrierCounters& counters() const noexcept override { return counters_; }
    /// Asks the host.
    std::uint64_t overflowed() const noexcept override;
    /// Whatever the network card. A quarter of the buffer may be charged for what has been read
    /// already: the kernel gives it back in such pieces.
    std::uint32_t bytes_held() const noexcept override {
        return static_cast<std::uint32_t>(
            std::min<std::size_t>(buffer_granted_ / 4 * 3, UINT32_MAX));
    }
    /// The same as a number of datagrams.
    std::uint32_t datagrams_held(std::size_t payload = kDefaultPayload) const noexcept {
        return static_cast<std::uint32_t>(bytes_held() / bytes_charged(payload));
    }
    /// Empty: the buffer is large enough, or as large as was asked for.
    std::string buffer_advice() const override;

private:
    bool send_one(const sockaddr_in& to, std::span<const std::byte> datagram) noexcept;
    std::size_t send_queued() noexcept;
    std::size_t gso_batch_from(std::size_t first, std::size_t end) const noexcept;
    void send_gso_batch(const sockaddr_in& to, std::size_t first, std::size_t count) noexcept;
    [[nodiscard]] bool send_in_one_piece(const sockaddr_in& to, std::size_t first,
                                         std::size_t count) noexcept;
    void flush_gso_batches(std::size_t count) noexcept;
    void flush_singly(std::size_t count) noexcept;
    bool note_not_sent(std::size_t datagrams) noexcept;
    std::size_t receive_one() noexcept;
    std::size_t receive_many() noexcept;
    void cut(std::span<std::byte> bytes, const sockaddr_in& from) noexcept;
    void note_receive_error() noexcept;
    void prepare_batches();

    [[nodiscard]] bool has_network_changed() const noexcept;

    const SocketSettings settings_;
    Interface joined_;     ///< where the others' groups are; no number: nowhere
    std::string problem_;  ///< why they are nowhere, or elsewhere
    Descriptor changes_;   ///< the host tells of some
    Descriptor socket_;
    std::size_t buffer_granted_ = 0;
    std::vector<sockaddr_in> nodes_;   ///< fan-out: of each node; else empty
    std::vector<sockaddr_in> others_;  ///< where a datagram to all is sent
    CarrierCounters counters_;

    // What sendmmsg and recvmmsg read, made once; only lengths change.
    bool gso_;  ///< the host has not refused one yet
    std::unique_ptr<std::byte[]> in_bytes_;
    std::array<iovec, kMaxInBatch> out_parts_{}, in_parts_{};
    std::vector<mmsghdr> out_;  ///< for each datagram queued each of others_
    std::array<mmsghdr, kMaxInBatch> in_{};
    std::vector<std::span<std::byte>> received_;
    bool asks_for_senders_ = false;
    std::array<sockaddr_in, kMaxInBatch> in_from_{};
    std::vector<Ip> from_;  ///< of each of received_, if asked for
    std::optional<sockaddr_in> namesakes_;
    std::size_t queued_ = 0;
    unsigned in_a_row_ = 0;  ///< calls that found a datagram waiting
};

}  // namespace rmem::udp
