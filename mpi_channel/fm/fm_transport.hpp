// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The channel interface over Fast Messages, as they set out to carry MPI: the transport of
/// RMEM_MPI=transport=fm.
///
///     MPID_SendControl, SendControlBlock   one message: Lead, packet
///     MPID_RecvAnyControl, ControlMsgAvail the handler sets the next message aside
///     MPID_SendChannel                     messages of kind bulk, each as long as one may be
///     MPID_RecvFromChannel                 the next of these
///
/// Differences to the channel on the billboard: a packet to several ranks is one message for each.
/// Where some of them have room and some have not, it is kept for the latter, before all that is
/// sent to them later: then has_backlog(). While the packet of another rank waits to be taken by
/// recv_any_control, recv_from_channel returns BBP_EAGAIN. Messages that are taken may bring room
/// to send (credit), so a rank that waits for it goes on taking. There is no barrier: groups
/// gather instead.
///
/// Contract: mpi_channel/transport.hpp. A packet stays where it is until the next call of
/// recv_any_control. The ring tells which ranks are there and alive; all bytes go by Fast Messages.
/// Trust: a message that does not begin with the Lead of its sender is BBP_ESIZE of that rank, as
/// one that is too long.

#include "billboard/process/process_endpoint.hpp"
#include "mpi_channel/fm/fm_port.hpp"
#include "mpi_channel/transport.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace mpi_channel {

class FmTransport {
public:
    using Bytes = std::span<const std::byte>;
    static constexpr bool kHasBarriers = false;

    /// Joins the ring with these settings, unless this process has joined it. Throws
    /// `rmem::Error`.
    explicit FmTransport(const billboard::Settings& settings);
    FmTransport(const FmTransport&) = delete;
    FmTransport& operator=(const FmTransport&) = delete;

    [[nodiscard]] unsigned rank() const noexcept { return rank_; }
    [[nodiscard]] unsigned ranks() const noexcept { return static_cast<unsigned>(due_.size()); }
    [[nodiscard]] std::size_t packet_most() const noexcept { return packet_most_; }
    [[nodiscard]] int ask_for(unsigned from);

    // ---- Packets
    [[nodiscard]] int send_control(Bytes packet, unsigned to) {
        return send_control_block(packet, {}, to);
    }
    [[nodiscard]] int send_control_block(Bytes header, Bytes message, unsigned to);
    [[nodiscard]] int mcast_control(Bytes header, Bytes message, std::span<const int> to);
    [[nodiscard]] int recv_any_control(Bytes* packet, unsigned* from);
    [[nodiscard]] bool control_msg_avail();

    // ---- Bulk
    [[nodiscard]] int send_channel(Bytes bulk, unsigned to, std::size_t* sent);
    void expect_bulk(unsigned from, std::size_t bytes) noexcept { due_[from] += bytes; }
    [[nodiscard]] int recv_from_channel(std::span<std::byte> room, unsigned from,
                                        std::size_t* size);

    [[nodiscard]] int barrier(std::span<const int>, unsigned) const noexcept { return BBP_EINVAL; }
    [[nodiscard]] bool has_backlog() const noexcept {
        return !kept_for_.empty() || FmPort::has_backlog();
    }
    [[nodiscard]] TransportCounters counters() const noexcept { return counters_; }

    /// The process's endpoint, for what is not traffic.
    [[nodiscard]] std::shared_ptr<billboard::Endpoint> endpoint() const;
    [[nodiscard]] int wait_descriptor() { return process_->guarded().fd(); }

private:
    [[nodiscard]] int send(Lead::Kind kind, Bytes header, Bytes body, unsigned to);
    [[nodiscard]] int send_to_each(Bytes body, std::span<const int> to);
    void put_head(Lead::Kind kind, Bytes header, std::size_t body_bytes);
    [[nodiscard]] bool is_kept_for(unsigned rank) const noexcept;
    void send_kept();
    [[nodiscard]] bool has_next();

    std::shared_ptr<billboard::ProcessEndpoint> process_;
    FmPort port_;
    unsigned rank_;
    std::size_t packet_most_, piece_most_;
    std::vector<std::size_t> due_;  ///< bulk of each rank
    std::vector<std::byte> head_;   ///< Lead and header of what is sent
    std::vector<std::byte> kept_;   ///< a packet to several of which not all had room
    std::vector<int> kept_for_;
    bool has_next_ = false;  ///< what has come, and is not all taken
    unsigned next_from_ = 0;
    Lead::Kind next_kind_ = Lead::Kind::packet;
    bool next_is_good_ = false;
    Bytes next_;
    TransportCounters counters_;
};
static_assert(Transport<FmTransport>);

}  // namespace mpi_channel
