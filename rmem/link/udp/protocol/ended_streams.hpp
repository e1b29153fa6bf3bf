// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Streams whose incarnations are over: what survivors have of them is brought to all of them, and
/// who has more or less in the end is known.
///
/// Terms
///   awaited   what others have of it beyond what is here is still taken from them
///   heirs     the members that have the stream, too
/// Invariants: of a node at most one stream is kept that has ended, and of a
///   member's none is awaited. Its last applied batch stays known after it is closed.
/// Threads, progress, trust, units: those of rmem/link/udp/protocol/exchange.hpp.

#include "rmem/base/node_set.hpp"
#include "rmem/link/udp/protocol/peers.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmem::udp {

class RMEM_API EndedStreams {
public:
    /// Both outlive it.
    EndedStreams(const ExchangeConfig& config, Peers& peers)
        : config_(config), peers_(peers), ended_(config.nodes) {}

    /// An incarnation of the node begins, before it is a member.
    void begin(unsigned node, std::uint64_t incarnation, std::int64_t now);
    /// The node is a member no more; `former`: its stream, if it was one.
    void end(unsigned node, TakenStream former, const NodeSet& heirs, std::int64_t now);

    /// That incarnation's, if it is awaited.
    template <class Named>
    TakenStream* find(const Named& named) noexcept {
        if (named.node >= ended_.size()) return nullptr;
        Ended& ended = ended_[named.node];
        return ended.in && ended.is(named) ? &ended : nullptr;
    }
    /// The node's, if it is awaited still.
    TakenStream* awaited(unsigned node, std::int64_t now);
    const TakenStream& stream(unsigned node) const noexcept { return ended_[node]; }
    /// How far another survivor has the stream of a node that is dead here.
    void take_position(unsigned from, const Ack& ack, bool has_ended, std::int64_t now);
    /// Says in the datagram how far ended streams are here.
    void add_to(DatagramWriter& writer, std::int64_t now) const;
    /// Nothing more is taken of any.
    void close_all(std::int64_t now) {
        for (Ended& ended : ended_) close(ended, now);
    }

    /// Whether all members that said how far they have the node's have as much as is here, or time
    /// is up.
    bool is_completed(unsigned node, std::int64_t now) const noexcept;
    bool all_completed(std::int64_t now) const noexcept;
    /// The node has said of each of which something was applied here that it has as much of it.
    bool agrees(unsigned node) const noexcept;
    /// The nodes that have another length of one than this node, or none though they should, and to
    /// which nobody forwarded the rest in time.
    const NodeSet& differs_from() const noexcept { return differs_from_; }
    /// Something of the node's last one was applied here, if it was that incarnation's: some of it
    /// may have come from others since.
    bool has_applied(unsigned node, std::uint64_t incarnation) const noexcept {
        return ended_[node].incarnation == incarnation && ended_[node].has_begun();
    }

private:
    struct Ended : TakenStream {
        static constexpr std::uint64_t kUnsaid = UINT64_MAX;

        std::uint64_t applied() const noexcept { return in ? in->applied() : position; }
        bool has_begun() const noexcept { return in ? in->has_begun() : had_begun; }

        bool had_begun = false;      ///< when it was closed
        std::uint64_t position = 0;  ///< the same: how far it was brought
        std::int64_t since_ns = 0;
        std::int64_t told_until_ns = 0;  ///< closed: until then others are told the position
        NodeSet heirs;
        std::vector<std::uint64_t> others_have;  ///< each node as it said
        /// With these it is over, too: they will not have more but forwarded batches.
        NodeSet ended_at;
    };

    void close(Ended& ended, std::int64_t now);

    const ExchangeConfig& config_;
    Peers& peers_;
    std::vector<Ended> ended_;  ///< each node's last one; incarnation 0: none has ended
    NodeSet differs_from_;
};

}  // namespace rmem::udp
