// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What members exchange: each one's stream of writes, brought to all others in order,
/// retransmitted and acknowledged.
///
/// The data plane of the udp link's core (docs/design/udp-link.md). It has neither socket nor
/// clock: times and datagrams come in, datagrams and writes go out through an ExchangeEdge. It is
/// told who is a member; what it does not know itself in a datagram, of joining and views, it
/// passes on.
///
///     exchange.write(index, words, from, now); … exchange.commit(now);   // the own writes
///     exchange.on_datagram(bytes, now);                                  // what came
///     if (now >= exchange.due_ns()) exchange.on_tick(now);               // timers
///
/// Invariants
///   apply() is called once for each batch of a member, in the order of its stream.
///   Nobody's stream is ahead of what its slowest receiver has acknowledged by more than the
///   window. Of an incarnation that is not believed (docs/design/udp-link.md: Greeting) nothing
///   counts but its greetings. Equal calls give equal calls of the edge.
/// Threads: one user at a time; the edge does not call back into it.
/// Progress: no call waits; memory is taken when a member's stream begins.
/// Trust: a datagram counts when all of it is well-formed, of this ring, tagged by an incarnation
/// that is believed, and new. What a member names that it cannot mean is bounded and counted, never
/// followed.
/// Units: nanoseconds of one clock that does not go backwards, from 0.

#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/belief.hpp"
#include "rmem/link/udp/protocol/datagram_lengths.hpp"
#include "rmem/link/udp/protocol/datagram_writer.hpp"
#include "rmem/link/udp/protocol/exchange_own.hpp"
#include "rmem/link/udp/protocol/in_stream.hpp"
#include "rmem/link/udp/protocol/out_stream.hpp"
#include "rmem/link/udp/protocol/outgoing.hpp"
#include "rmem/link/udp/protocol/round_trip.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rmem::udp {

inline constexpr std::int64_t kAckNs = 20'000;  ///< time an ack waits for a datagram to ride on
inline constexpr std::int64_t kEchoNs =
    100'000;  ///< between echoes to one node: round trips change slowly
inline constexpr std::uint32_t kAcksAWindow =
    4;  ///< or until that part of a window is unacknowledged: a quarter
inline constexpr std::uint64_t kMostForwarded = 32;  ///< batches for one NAK

class RMEM_API Exchange {
public:
    /// The authenticator, the edge and `outgoing` outlive it.
    Exchange(const ExchangeConfig& config, const Authenticator& authenticator, ExchangeEdge& edge,
             Outgoing& outgoing);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    Belief& belief() noexcept { return belief_; }
    const Belief& belief() const noexcept { return belief_; }
    void send_greetings(std::uint16_t flags, std::int64_t now);

    // ---- Members
    /// From the next own batch on the node is a receiver; returns that batch's sequence. What is
    /// longer than it can take leaves before.
    [[nodiscard]] std::uint64_t admit(unsigned node, std::int64_t now);
    /// This incarnation's stream is taken from that sequence on. A former incarnation of the node
    /// ends.
    void begin(unsigned node, std::uint64_t incarnation, std::uint64_t first, std::int64_t now);
    /// It receives and sends no more. What others have of its stream beyond what is here is still
    /// taken from them, until a new incarnation of it begins. `heirs`: the members that have that
    /// stream, too; empty when it was no member.
    void end(unsigned node, const NodeSet& heirs, std::int64_t now);
    /// Whether all members that said how far they have an ended stream have as much as is here, or
    /// time is up.
    bool is_completed(unsigned node, std::int64_t now) const noexcept;
    bool all_completed(std::int64_t now) const noexcept;
    /// The node has said of each stream that has ended here, if something of it was applied, that
    /// it has as much of it.
    bool agrees_on_ended(unsigned node) const noexcept;
    /// Nothing more is taken of streams that have ended.
    void close_ended(std::int64_t now) {
        for (Peer& peer : peers_) close(peer.ended, now);
    }
    /// Says in the datagram under composition how far ended streams are here.
    void add_ended(DatagramWriter& writer, std::int64_t now);
    /// The nodes that have another length of an ended stream than this one, or none though they
    /// should, and to which nobody forwarded the rest in time.
    const NodeSet& differs_from() const noexcept { return differs_from_; }
    bool takes(unsigned node) const noexcept { return peers_[node].in != nullptr; }
    /// Its batches are kept, but neither applied nor acknowledged, until it is released: it may be
    /// another ring that it writes in.
    void defer(unsigned node) noexcept { peers_[node].is_deferred = true; }
    void release(unsigned node, std::int64_t now);
    /// Something of its stream was applied here.
    bool has_applied(unsigned node) const noexcept {
        return takes(node) && peers_[node].in->has_begun();
    }
    /// The same of the stream that ended last, if it was that incarnation's: some of it may have
    /// come from others since.
    bool has_applied_ended(unsigned node, std::uint64_t incarnation) const noexcept {
        return peers_[node].ended.incarnation == incarnation && peers_[node].ended.has_begun();
    }

    /// What receivers' hosts have for own batches under way, in bytes as charged.
    void set_window(std::size_t charged) noexcept;
    /// Of the longest datagram that is sent now.
    std::size_t payload() const noexcept { return lengths_.longest(); }
    /// Batches of that length under way at most.
    std::uint32_t window() const noexcept { return out_.window(payload()); }

    // ---- Own writes
    /// Whether `words` words, in one write, would not go beyond the window.
    [[nodiscard]] bool has_room(std::size_t words, unsigned spare = 0) const noexcept;
    /// Adds a write to the batch that the next commit sends; one that is full is sent at once. A
    /// batch has the time of its first write.
    [[nodiscard]] bool try_write(std::uint64_t index, std::size_t words, const void* from,
                                 std::int64_t now, std::uint8_t flags = 0) {
        if (composing_ &&
            batch_.add_record({index, static_cast<std::uint16_t>(words), flags}, from))
            return true;  // usually
        if (!has_room(words)) return false;
        write(index, words, from, now, flags);
        return true;
    }
    void write(std::uint64_t index, std::size_t words, const void* from, std::int64_t now,
               std::uint8_t flags = 0);
    void commit(std::int64_t now);
    /// When the first write was stored of those that the next commit sends; kNever: there are none.
    std::int64_t open_since_ns() const noexcept { return composing_ ? open_since_ns_ : kNever; }
    bool is_idle() const noexcept { return out_.is_idle() && !composing_; }

    // ---- What comes
    /// Some of what the bank was behind is in it now, and is to be acknowledged.
    void has_published(unsigned node, std::int64_t now);
    void on_datagram(std::span<const std::byte> bytes, std::int64_t now);
    /// While it is on acknowledgements wait for on_tick(): more is about to come.
    void hold_answers(bool on) noexcept { holds_answers_ = on; }
    /// When on_tick() has something to do; kNever when nothing is open.
    std::int64_t due_ns() const noexcept;
    /// The part of it that makes up for a loss that was seen.
    std::int64_t repair_due_ns() const noexcept;
    void on_tick(std::int64_t now);
    /// All receivers are asked to say at once what they have, if they have not said so of all.
    void ask_for_acks(std::int64_t now);

    // ---- Sending what is not the exchange's
    /// A datagram of others' sections: begun, filled by the caller, and sent with acks in what is
    /// left. `bytes`: of sections that fit it, whatever the length of datagrams is now.
    DatagramWriter& begin_other(std::int64_t now, std::size_t bytes = 0);
    DatagramWriter& other() noexcept { return other_; }
    void send_other(std::int64_t now);
    /// The same, as long as what reaches this node may be, if a receiver may not know yet that so
    /// long ones reach it. It may get lost for its length.
    void send_other_at_length(std::int64_t now);

    // ---- What is known
    const OutStream& out() const noexcept { return out_; }
    std::uint64_t applied(unsigned node) const noexcept;
    /// Up to where its stream is published in the bank: up to there it is acknowledged.
    std::uint64_t published(unsigned node) const noexcept {
        return applied(node) - own_.edge.behind(node);
    }
    const RoundTrip& round_trip(unsigned node) const noexcept { return peers_[node].round_trip; }
    const ExchangeCounters& counters() const noexcept { return own_.counters; }
    /// Of this object, the peers and their streams.
    std::size_t memory_bytes() const noexcept;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    /// The stream of an incarnation that is over, as far as it was brought here.
    struct Ended {
        static constexpr std::uint64_t kUnsaid = UINT64_MAX;

        std::uint64_t incarnation = 0;     ///< 0: none has ended
        std::unique_ptr<InStream> stream;  ///< until nothing of it is awaited any more
        bool is_deferred = false;          ///< it was
        bool had_begun = false;            ///< without the stream: something of it was applied
        std::uint64_t position = 0;        ///< without the stream: how far it was brought
        std::int64_t since_ns = 0;
        std::int64_t told_until_ns = 0;  ///< without the stream: others are told the position
        NodeSet heirs;                   ///< who must have it, too
        std::vector<std::uint64_t> others_have;  ///< each node as it said
        /// With these it is over, too: they will not have more but forwarded batches.
        NodeSet ended_at;
        std::uint64_t applied() const noexcept { return stream ? stream->applied() : position; }
        bool has_begun() const noexcept { return stream ? stream->has_begun() : had_begun; }
    };
    /// Another node, as far as this one knows it.
    struct Peer {
        std::uint64_t incarnation = 0;  ///< of the incarnation whose stream is taken
        RoundTrip round_trip;
        std::unique_ptr<InStream> in;  ///< null: no member
        bool is_deferred = false;
        std::uint64_t acked = 0;                       ///< what it was told that we have
        std::size_t open_bytes = 0, open_charged = 0;  ///< of batches applied since
        Ended ended;                                   ///< its former incarnation
        std::int64_t heard_sent_ns = 0;                ///< the send time of its newest datagram
        std::int64_t echo_next_ns = 0;
        unsigned nak_backoff_steps =
            0;  ///< members between it and this node in the order of the ring
    };

    Header header(std::int64_t now);
    enum class Length : bool { as_needed, full };
    void send(DatagramWriter& writer, std::int64_t now, Length length = Length::as_needed,
              OutgoingDatagram::To to = OutgoingDatagram::To::all_nodes);
    void compose(std::int64_t now);
    void send_batch(Length length, std::int64_t now);
    void retransmit_batch(std::uint64_t sequence, std::uint8_t flags, std::int64_t now);
    void send_retransmissions(std::int64_t now);
    void add_acks(DatagramWriter& writer);
    void add_echo(DatagramWriter& writer, std::int64_t now);

    void take_section(const Header& header, const Section& section, std::int64_t now);
    void take_batch(unsigned origin, const Batch& batch, bool ack_at_once, std::int64_t now);
    void take_forwarded(const ForwardedBatch& forwarded, std::int64_t now);
    void take_acks(unsigned from, const Section& section, std::int64_t now);
    void take_naks(const Section& section, std::int64_t now);
    void take_position(unsigned from, const Ack& ack, bool has_ended, std::int64_t now);
    void close(Ended& ended, std::int64_t now);
    void forward(unsigned node, const Nak& nak, std::int64_t now);
    void send_naks(unsigned node, InStream& stream, std::uint64_t incarnation, std::uint8_t flags,
                   std::int64_t now);
    void take_in(unsigned origin, InStream& stream, bool is_deferred, const Batch& batch,
                 std::int64_t now);
    void apply_in_order(unsigned origin, InStream& stream, std::int64_t now);
    void take_echoes(const Header& header, const Section& section, std::int64_t now);
    void owe_ack(Peer& peer, bool at_once, std::int64_t now);
    void note_round_trip(unsigned node);
    void find_slowest();
    void count_nak_backoff();
    RetransmitTimes times_of(const Peer& peer) const noexcept;
    Peer* member(const NodeIncarnation& named) noexcept;

    ExchangeOwn own_;
    Outgoing& outgoing_;
    const IncarnationKey key_;
    std::vector<Peer> peers_;
    Belief belief_;
    OutStream out_;
    DatagramLengths lengths_;
    std::int64_t open_since_ns_ = 0;  ///< while composing
    std::size_t open_payload_ = 0;    ///< the same when the open batch was begun

    DatagramWriter batch_, other_;  ///< under composition: the next batch; anything else
    bool composing_ = false;        ///< a batch has begun
    bool holds_answers_ = false;
    std::uint64_t number_ = 0;  ///< of the last datagram
    NodeSet acks_due_;
    NodeSet differs_from_;
    int echo_to_ = -1;  ///< who was heard last, and not told so
    std::int64_t ack_due_ns_ = kNever;
    unsigned slowest_ = 0;  ///< member with the longest round trip: the own stream's timers are its
};

}  // namespace rmem::udp
