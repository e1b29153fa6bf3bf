// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The members whose streams are taken: their batches in order, what they are owed (acks, echoes),
/// their round trips, and the timers that follow these.
///
/// Invariants
///   apply() is called once for each batch of a stream, in its order. Only members are owed
///   anything. Deferred batches, and those not published yet, are not acknowledged.
/// Threads, progress, trust, units: those of rmem/link/udp/protocol/exchange.hpp.

#include "rmem/base/node_set.hpp"
#include "rmem/base/round_trip.hpp"
#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/belief.hpp"
#include "rmem/link/udp/protocol/datagram_writer.hpp"
#include "rmem/link/udp/protocol/exchange_own.hpp"
#include "rmem/link/udp/protocol/in_stream.hpp"
#include "rmem/link/udp/protocol/out_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rmem::udp {

inline constexpr std::int64_t kAckNs = 20'000;    ///< time an ack waits for a datagram to ride on
inline constexpr std::uint32_t kAcksAWindow = 4;  ///< or until a window's quarter is unacknowledged
inline constexpr std::int64_t kEchoNs = 100'000;  ///< between two to a node: they change slowly

/// The stream of one incarnation of a node, as far as it was brought here.
struct TakenStream {
    bool is(const NodeIncarnation& named) const noexcept {
        return incarnation != 0 && NodeIncarnation::of(named.node, incarnation) == named;
    }
    bool is(const MemberIncarnation& named) const noexcept {
        return incarnation == named.incarnation;
    }
    std::int64_t nak_due_ns() const noexcept { return in ? in->nak_due_ns() : kNever; }

    std::uint64_t incarnation = 0;
    std::unique_ptr<InStream> in;  ///< null: nothing of it is taken
    bool is_deferred = false;
};

class RMEM_API Peers {
public:
    /// All outlive it. The own stream's timers are those of the longest round trip.
    Peers(ExchangeOwn& own, OutStream& out, const Belief& belief)
        : own_(own), out_(out), belief_(belief), peers_(own.config.nodes) {}

    void begin(unsigned node, std::uint64_t incarnation, std::uint64_t first, std::int64_t now);
    /// Returns its stream, if it was a member.
    TakenStream end(unsigned node);
    bool takes(unsigned node) const noexcept { return peers_[node].in != nullptr; }
    /// The member that is named, if it is this incarnation of it.
    template <class Named>
    TakenStream* find(const Named& named) noexcept {
        if (named.node >= peers_.size()) return nullptr;
        Peer& peer = peers_[named.node];
        return peer.in && peer.is(named) ? &peer : nullptr;
    }
    TakenStream& stream(unsigned node) noexcept { return peers_[node]; }
    const TakenStream& stream(unsigned node) const noexcept { return peers_[node]; }
    void defer(unsigned node) noexcept { peers_[node].is_deferred = true; }
    void release(unsigned node, std::int64_t now);
    /// It is a member, and its stream is applied.
    bool is_of_ring(unsigned node) const noexcept {
        return takes(node) && !peers_[node].is_deferred;
    }
    std::uint64_t applied(unsigned node) const noexcept {
        return takes(node) ? peers_[node].in->applied() : own_.config.first_sequence - 1;
    }
    std::uint64_t published(unsigned node) const noexcept {
        return applied(node) - own_.edge.behind(node);
    }
    bool has_applied(unsigned node) const noexcept {
        return takes(node) && peers_[node].in->has_begun();
    }

    // ---- Batches
    void take_batch(unsigned origin, const Batch& batch, bool ack_at_once, std::int64_t now);
    /// The same of any stream of that node; nobody is owed an ack.
    void take_in(unsigned origin, TakenStream& stream, const Batch& batch, std::int64_t now);
    void apply_in_order(unsigned origin, TakenStream& stream, std::int64_t now);
    void has_published(unsigned node, std::int64_t now) {
        if (takes(node)) owe_ack(node, false, now);
    }

    // ---- Acks, echoes, round trips
    std::int64_t ack_due_ns() const noexcept { return ack_due_ns_; }
    void add_acks(DatagramWriter& writer);
    /// A member's datagram has come.
    void note_heard(const Header& header, std::int64_t now) noexcept;
    void add_echo(DatagramWriter& writer, std::int64_t now);
    /// A member's echo of this node.
    void take_echo(const Header& header, const Echo& echo, std::int64_t now);
    const RoundTrip& round_trip(unsigned node) const noexcept { return peers_[node].round_trip; }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    struct Peer : TakenStream {
        std::uint64_t acked = 0;                       ///< what it was told that we have
        std::size_t open_bytes = 0, open_charged = 0;  ///< of batches applied since
        RoundTrip round_trip;
        std::int64_t heard_sent_ns = 0;  ///< the send time of its newest datagram
        std::int64_t echo_next_ns = 0;
        unsigned nak_backoff_steps = 0;  ///< members from it to this node in the ring's order
    };

    void owe_ack(unsigned node, bool at_once, std::int64_t now);
    RetransmitTimes times_of(const Peer& peer) const noexcept;
    void note_round_trip(unsigned node);
    void find_slowest();
    void count_nak_backoff();

    ExchangeOwn& own_;
    OutStream& out_;
    const Belief& belief_;
    std::vector<Peer> peers_;
    NodeSet acks_due_;
    std::int64_t ack_due_ns_ = kNever;
    int echo_to_ = -1;      ///< who was heard last, and not told so
    unsigned slowest_ = 0;  ///< member with the longest round trip
};

}  // namespace rmem::udp
