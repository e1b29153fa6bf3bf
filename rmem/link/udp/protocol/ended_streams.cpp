// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/ended_streams.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <utility>

namespace rmem::udp {

void EndedStreams::begin(unsigned node, std::uint64_t incarnation, std::int64_t now) {
    Ended& ended = ended_[node];
    close(ended, now);
    if (ended.incarnation == incarnation) ended = Ended();  // it was not over
}

void EndedStreams::end(unsigned node, TakenStream former, const NodeSet& heirs, std::int64_t now) {
    RMEM_CHECK(!peers_.takes(node));
    Ended& its = ended_[node];
    if (former.in) {
        its = Ended();
        static_cast<TakenStream&>(its) = std::move(former);
        its.since_ns = now;
        its.heirs = heirs;
        its.others_have.assign(ended_.size(), Ended::kUnsaid);
    }
    // A later incarnation of the node never had the streams that ended before it.
    for (Ended& other : ended_) {
        if (other.incarnation == 0 || &other == &its) continue;
        other.heirs.erase(node);
        other.ended_at.erase(node);
        other.others_have[node] = Ended::kUnsaid;
    }
    differs_from_.erase(node);
}

/// Nothing more of it is awaited; which nodes have more or less of it than this is known by now.
void EndedStreams::close(Ended& ended, std::int64_t now) {
    if (!ended.in) return;
    ended.position = ended.in->applied();
    ended.had_begun = ended.in->has_begun();
    ended.in.reset();
    for (unsigned other = 0; other < ended_.size(); ++other) {
        if (!peers_.takes(other)) continue;
        const std::uint64_t has = ended.others_have[other];
        const bool owes = has == Ended::kUnsaid && !ended.heirs.contains(other);
        if (has != ended.position && !owes) differs_from_.insert(other);
    }
    ended.told_until_ns = now + config_.hear_ns;
}

TakenStream* EndedStreams::awaited(unsigned node, std::int64_t now) {
    Ended& ended = ended_[node];
    if (now - ended.since_ns >= 2 * config_.hear_ns) close(ended, now);
    return ended.in ? &ended : nullptr;
}

void EndedStreams::take_position(unsigned from, const Ack& ack, bool has_ended, std::int64_t now) {
    if (ack.origin.node >= ended_.size()) return;
    Ended& ended = ended_[ack.origin.node];
    if (!ended.is(ack.origin)) return;
    const std::uint64_t position = widened(ack.up_to, ended.applied());
    if (ended.in) {
        // A node of this ring has some of it: so it was.
        const bool is_of_ring = peers_.is_of_ring(from);
        if (ended.is_deferred && is_of_ring && position > ended.applied()) {
            ended.is_deferred = false;
            peers_.apply_in_order(ack.origin.node, ended, now);
        }
        if (ended.is_deferred && !is_of_ring) return;
        ended.others_have[from] = position;
        if (has_ended) ended.ended_at.insert(from);
        ended.in->note_newest(position, now);
    } else {
        ended.others_have[from] = position;
        if (position != ended.position && peers_.takes(from)) differs_from_.insert(from);
        ended.told_until_ns = std::max(ended.told_until_ns, now + config_.hear_ns / 2);
    }
}

void EndedStreams::add_to(DatagramWriter& writer, std::int64_t now) const {
    for (unsigned node = 0; node < ended_.size(); ++node) {
        const Ended& ended = ended_[node];
        if (!ended.in && now >= ended.told_until_ns) continue;
        writer.add_ack({NodeIncarnation::of(static_cast<std::uint16_t>(node), ended.incarnation),
                        static_cast<std::uint32_t>(ended.applied())},
                       Section::kEnded);
    }
}

bool EndedStreams::is_completed(unsigned node, std::int64_t now) const noexcept {
    const Ended& ended = ended_[node];
    const std::int64_t since = now - ended.since_ns;
    if (!ended.in || since >= 2 * config_.hear_ns) return true;
    for (unsigned other = 0; other < ended_.size(); ++other) {
        if (other == node || !peers_.takes(other)) continue;
        const std::uint64_t has = ended.others_have[other];
        if (has == ended.applied() && ended.ended_at.contains(other)) continue;
        if (has != Ended::kUnsaid || ended.heirs.contains(other)) return false;
        // It may never have taken that stream; it has not if there was none.
        const bool was_none = ended.heirs.empty() && ended.in->newest() < config_.first_sequence;
        if (!was_none && since < config_.hear_ns) return false;
    }
    return true;
}

bool EndedStreams::all_completed(std::int64_t now) const noexcept {
    for (unsigned node = 0; node < ended_.size(); ++node) {
        if (!is_completed(node, now)) return false;
    }
    return true;
}

bool EndedStreams::agrees(unsigned node) const noexcept {
    return std::all_of(ended_.begin(), ended_.end(), [&](const Ended& ended) {
        return !ended.has_begun() || ended.others_have[node] == ended.applied();
    });
}

}  // namespace rmem::udp
