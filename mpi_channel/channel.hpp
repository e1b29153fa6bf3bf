// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The channel interface: the seam between MPI and the billboard, as in the paper (§4) and in
/// MPICH-1.
///
///     MPID_SendControl       send_control         a packet to a rank
///     MPID_SendControlBlock  send_control_block   the same, of two parts: header and message
///     MPID_RecvAnyControl    recv_any_control     the next packet of any rank
///     MPID_ControlMsgAvail   control_msg_avail    whether there is one
///     MPID_SendChannel       send_channel         bulk to a rank: bytes that a packet has
///                            announced
///     MPID_RecvFromChannel   recv_from_channel    bulk of a rank
///
/// and what the paper added: mcast_control, a packet to several ranks by one post.
///
/// Two things differ from 1999. No call waits, because two ranks that send to each other could wait
/// for each other: a call that finds no room returns BBP_EAGAIN, and has sent nothing. And the
/// receiver reads a packet in the sender's partition, without a copy: it stays there until the next
/// call of recv_any_control.
///
/// Packets and bulk of one sender arrive in the order in which they were sent. After a packet that
/// announces bulk (expect_bulk) the receiver takes that bulk with recv_from_channel before anything
/// else of that rank; recv_any_control returns kBulk when it meets it.
///
/// Errors: the billboard's codes; BBP_EPEER when `*from` or the receiver has died.
/// Progress, thread safety: billboard/endpoint.hpp. The endpoint outlives the channel.

#include "billboard/core/answer_pause.hpp"
#include "mpi_channel/bulk.hpp"
#include "mpi_channel/transport.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace mpi_channel {

class Channel {
public:
    using Bytes = std::span<const std::byte>;

    explicit Channel(billboard::Endpoint& endpoint);
    ~Channel() { release(); }
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    [[nodiscard]] unsigned rank() const noexcept { return endpoint_.rank(); }
    [[nodiscard]] unsigned ranks() const noexcept { return endpoint_.ranks(); }
    /// The longest packet, header and message together.
    [[nodiscard]] std::size_t packet_most() const noexcept { return packet_most_; }

    /// The next call for this rank would meet: BBP_OK: something; BBP_EAGAIN: nothing waits;
    /// BBP_EPEER: nothing waits, and the rank is dead or has left.
    [[nodiscard]] int ask_for(unsigned from) {
        const int result = endpoint_.probe(static_cast<int>(from), nullptr, billboard::Class::mpi);
        return result >= 0 ? BBP_OK : result;
    }

    // ---- Packets: a header, and the message behind it
    [[nodiscard]] int send_control(Bytes packet, unsigned to) {
        return send_control_block(packet, {}, to);
    }
    [[nodiscard]] int send_control_block(Bytes header, Bytes message, unsigned to) {
        const int dest = static_cast<int>(to);
        const int result =
            endpoint_.send_joined({&dest, 1}, header, message, billboard::Class::mpi);
        if (result == BBP_OK) {
            ++counters_.packets_sent;
            pause_.sent();
        }
        return result;
    }
    [[nodiscard]] int mcast_control(Bytes header, Bytes message, std::span<const int> to) {
        const int result = endpoint_.send_joined(to, header, message, billboard::Class::mpi);
        if (result == BBP_OK) ++counters_.multicasts;
        return result;
    }
    /// BBP_OK: a packet; kBulk: bulk of `*from` is next; BBP_EAGAIN: there is nothing; BBP_ESIZE:
    /// `*from` has sent more bytes than a packet has.
    [[nodiscard]] int recv_any_control(Bytes* packet, unsigned* from);
    [[nodiscard]] bool control_msg_avail();

    // ---- Bulk (mpi_channel/bulk.hpp)
    [[nodiscard]] int send_channel(Bytes bulk, unsigned to, std::size_t* sent) {
        return bulk_.send(bulk, to, sent);
    }
    void expect_bulk(unsigned from, std::size_t bytes) noexcept { bulk_.expect(from, bytes); }
    [[nodiscard]] int recv_from_channel(std::span<std::byte> room, unsigned from,
                                        std::size_t* size) {
        return bulk_.receive(room, from, size);
    }

    [[nodiscard]] static constexpr bool has_backlog() noexcept { return false; }

    static constexpr bool kHasBarriers = true;
    /// The billboard's: BBP_EAGAIN until all of these ranks have come; call again.
    [[nodiscard]] int barrier(std::span<const int> members, unsigned id) {
        return endpoint_.barrier_group(members, id, billboard::Deadline::now());
    }

    [[nodiscard]] TransportCounters counters() const noexcept;

private:
    void release();

    billboard::Endpoint& endpoint_;
    Bulk bulk_;
    std::size_t packet_most_;
    std::array<std::byte, billboard::kTakenBytes> short_{};  ///< a packet that has arrived
    const void* view_ = nullptr;  ///< a longer one, in its sender's partition
    billboard::AnswerPause pause_;
    TransportCounters counters_;
};

}  // namespace mpi_channel
