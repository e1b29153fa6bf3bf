// SPDX-License-Identifier: Apache-2.0
// Streams whose incarnations are over: who has how much of them.
#include "rmem/link/udp/protocol/exchange.hpp"

#include <algorithm>

namespace rmem::udp {

/// Nothing more of it is awaited; which nodes have more or less of it than this is known by now.
void Exchange::close(Ended& ended, std::int64_t now) {
    if (!ended.stream) return;
    ended.position = ended.stream->applied();
    ended.had_begun = ended.stream->has_begun();
    ended.stream.reset();
    for (unsigned other = 0; other < peers_.size(); ++other) {
        if (!peers_[other].in) continue;
        const std::uint64_t has = ended.others_have[other];
        const bool owes = has == Ended::kUnsaid && !ended.heirs.contains(other);
        if (has != ended.position && !owes) differs_from_.insert(other);
    }
    ended.told_until_ns = now + own_.config.hear_ns;
}

bool Exchange::is_completed(unsigned node, std::int64_t now) const noexcept {
    const Ended& ended = peers_[node].ended;
    const std::int64_t since = now - ended.since_ns;
    if (!ended.stream || since >= 2 * own_.config.hear_ns) return true;
    for (unsigned other = 0; other < peers_.size(); ++other) {
        if (other == node || !peers_[other].in) continue;
        const std::uint64_t has = ended.others_have[other];
        if (has == ended.applied() && ended.ended_at.contains(other)) continue;
        if (has != Ended::kUnsaid || ended.heirs.contains(other)) return false;
        // It may never have taken that stream; it has not if there was none.
        const bool was_none =
            ended.heirs.empty() && ended.stream->newest() < own_.config.first_sequence;
        if (!was_none && since < own_.config.hear_ns) return false;
    }
    return true;
}

bool Exchange::all_completed(std::int64_t now) const noexcept {
    for (unsigned node = 0; node < peers_.size(); ++node) {
        if (!is_completed(node, now)) return false;
    }
    return true;
}

bool Exchange::agrees_on_ended(unsigned node) const noexcept {
    return std::all_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
        const Ended& ended = peer.ended;
        return !ended.has_begun() || ended.others_have[node] == ended.applied();
    });
}

void Exchange::add_ended(DatagramWriter& writer, std::int64_t now) {
    for (unsigned node = 0; node < peers_.size(); ++node) {
        const Ended& ended = peers_[node].ended;
        if (!ended.stream && now >= ended.told_until_ns) continue;
        writer.add_ack({NodeIncarnation::of(static_cast<std::uint16_t>(node), ended.incarnation),
                        static_cast<std::uint32_t>(ended.applied())},
                       Section::kEnded);
    }
}

/// How far another survivor has the stream of a node that is dead here.
void Exchange::take_position(unsigned from, const Ack& ack, bool has_ended, std::int64_t now) {
    if (ack.origin.node >= peers_.size()) return;
    Ended& ended = peers_[ack.origin.node].ended;
    if (ended.incarnation == 0 ||
        NodeIncarnation::of(ack.origin.node, ended.incarnation) != ack.origin)
        return;
    const std::uint64_t position = widened(ack.up_to, ended.applied());
    if (ended.stream) {
        // A node of this ring has some of it: so it was.
        const bool is_of_ring = peers_[from].in && !peers_[from].is_deferred;
        if (ended.is_deferred && is_of_ring && position > ended.applied()) {
            ended.is_deferred = false;
            apply_in_order(ack.origin.node, *ended.stream, now);
        }
        if (ended.is_deferred && !is_of_ring) return;
        ended.others_have[from] = position;
        if (has_ended) ended.ended_at.insert(from);
        ended.stream->note_newest(position, now);
    } else {
        ended.others_have[from] = position;
        if (position != ended.position && peers_[from].in) differs_from_.insert(from);
        ended.told_until_ns = std::max(ended.told_until_ns, now + own_.config.hear_ns / 2);
    }
}

}  // namespace rmem::udp
