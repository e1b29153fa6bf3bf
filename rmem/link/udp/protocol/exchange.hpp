// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What members exchange: each one's stream of writes, brought to all others in order,
/// retransmitted and acknowledged.
///
/// The data plane of the udp link's core (docs/design/udp-link.md). It has neither socket nor
/// clock: times and datagrams come in, datagrams and writes go out through an ExchangeEdge. It is
/// told who is a member; what it does not know itself in a datagram, of joining and views, it
/// passes on. It is made of parts, each of which owns its state, and knows only those above it:
///   exchange_own.hpp      what all use: configuration, edge, counters
///   belief.hpp            whose datagrams count, and who is silent
///   out_stream.hpp        the own stream
///   datagram_lengths.hpp  how long datagrams are
///   peers.hpp             the members' streams, acks, round trips
///   ended_streams.hpp     what survivors have of those that are over
/// Here is what makes datagrams of them: composing, sending, taking apart, timers.
///
///     exchange.write(index, words, from, now); … exchange.commit(now);   // the own writes
///     exchange.on_datagram(bytes, now);                                  // what came
///     if (now >= exchange.due_ns()) exchange.on_tick(now);               // timers
///
/// It promises, and its parts execute
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
#include "rmem/link/udp/protocol/ended_streams.hpp"
#include "rmem/link/udp/protocol/exchange_own.hpp"
#include "rmem/link/udp/protocol/out_stream.hpp"
#include "rmem/link/udp/protocol/outgoing.hpp"
#include "rmem/link/udp/protocol/peers.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rmem::udp {

inline constexpr std::uint64_t kMaxForwarded = 32;  ///< batches for one NAK

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
    const EndedStreams& ended() const noexcept { return ended_; }
    void close_ended(std::int64_t now) { ended_.close_all(now); }

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
    bool takes(unsigned node) const noexcept { return peers_.takes(node); }
    /// Its batches are kept, but neither applied nor acknowledged, until it is released: it may be
    /// another ring that it writes in.
    void defer(unsigned node) noexcept { peers_.defer(node); }
    void release(unsigned node, std::int64_t now) { peers_.release(node, now); }
    /// Something of its stream was applied here.
    bool has_applied(unsigned node) const noexcept { return peers_.has_applied(node); }

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
    void has_published(unsigned node, std::int64_t now) { peers_.has_published(node, now); }
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
    /// The same of what was written last, with what it leaves with.
    void ask_at_once() noexcept {
        if (composing_) batch_.flag_batch(Section::kAckAtOnce);
    }

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
    std::uint64_t applied(unsigned node) const noexcept { return peers_.applied(node); }
    /// Up to where its stream is published in the bank: up to there it is acknowledged.
    std::uint64_t published(unsigned node) const noexcept { return peers_.published(node); }
    const RoundTrip& round_trip(unsigned node) const noexcept { return peers_.round_trip(node); }
    const ExchangeCounters& counters() const noexcept { return own_.counters; }

private:
    Header header(std::int64_t now);
    enum class Length : bool { as_needed, full };
    void send(DatagramWriter& writer, std::int64_t now, Length length = Length::as_needed,
              OutgoingDatagram::To to = OutgoingDatagram::To::all_nodes);
    void compose(std::int64_t now);
    void send_batch(Length length, std::int64_t now);
    void retransmit_batch(std::uint64_t sequence, std::uint8_t flags, std::int64_t now);
    void send_retransmissions(std::int64_t now);
    void take_section(const Header& header, const Section& section, bool is_member,
                      std::int64_t now);
    void take_forwarded(const ForwardedBatch& forwarded, std::int64_t now);
    void take_acks(unsigned from, const Section& section, std::int64_t now);
    void take_naks(const Section& section, std::int64_t now);
    void forward(const Nak& nak, std::int64_t now);
    void send_naks(unsigned node, TakenStream& stream, std::uint8_t flags, std::int64_t now);

    ExchangeOwn own_;
    Outgoing& outgoing_;
    const IncarnationKey key_;
    Belief belief_;
    OutStream out_;
    DatagramLengths lengths_;
    Peers peers_;
    EndedStreams ended_;
    std::int64_t open_since_ns_ = 0;  ///< while composing
    std::size_t open_payload_ = 0;    ///< the same when the open batch was begun

    DatagramWriter batch_, other_;  ///< under composition: the next batch; anything else
    bool composing_ = false;        ///< a batch has begun
    bool holds_answers_ = false;
    std::uint64_t number_ = 0;  ///< of the last datagram
};

}  // namespace rmem::udp
