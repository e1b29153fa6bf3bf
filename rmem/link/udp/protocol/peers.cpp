// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/peers.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <utility>

namespace rmem::udp {

void Peers::begin(unsigned node, std::uint64_t incarnation, std::uint64_t first, std::int64_t now) {
    Peer& peer = peers_[node] = Peer();
    peer.incarnation = incarnation;
    peer.in = std::make_unique<InStream>(first, own_.config.most_batches, kMaxBodyBytes);
    peer.acked = first - 1;
    peer.echo_next_ns = now;
    count_nak_backoff();
}

TakenStream Peers::end(unsigned node) {
    TakenStream ended = std::move(peers_[node]);
    acks_due_.erase(node);
    if (acks_due_.empty()) ack_due_ns_ = kNever;
    if (echo_to_ == static_cast<int>(node)) echo_to_ = -1;
    count_nak_backoff();
    return ended;
}

void Peers::release(unsigned node, std::int64_t now) {
    Peer& peer = peers_[node];
    if (!peer.in || !std::exchange(peer.is_deferred, false)) return;
    apply_in_order(node, peer, now);
    // Of many that become members together most have written nothing yet, and all hear each answer.
    if (published(node) != peer.acked) owe_ack(node, true, now);
}

// ---- Batches

void Peers::take_batch(unsigned origin, const Batch& batch, bool ack_at_once, std::int64_t now) {
    take_in(origin, peers_[origin], batch, now);
    // Of a repeated one, too: the last ack may have been lost.
    if (own_.edge.behind(origin) == 0) owe_ack(origin, ack_at_once, now);
}

void Peers::take_in(unsigned origin, TakenStream& stream, const Batch& batch, std::int64_t now) {
    if (!batch.is_inside(own_.config.bank_bytes)) {
        ++own_.counters.outside;
        return;
    }
    switch (stream.in->offer(batch.sequence(), batch.body(), now)) {
        case InStream::Offer::taken: break;
        case InStream::Offer::known: ++own_.counters.repeated; return;
        default: ++own_.counters.outside; return;
    }
    if (!stream.is_deferred) apply_in_order(origin, stream, now);
}

void Peers::apply_in_order(unsigned origin, TakenStream& stream, std::int64_t now) {
    while (const auto body = stream.in->take()) {
        const Batch batch(*body);
        RMEM_CHECK_IF(false, batch.sequence() == stream.in->applied());
        ++own_.counters.batches_applied;
        peers_[origin].open_bytes += body->size();
        peers_[origin].open_charged += bytes_charged(body->size() + kEnvelopeBytes);
        own_.edge.apply(origin, batch, now);
    }
}

// ---- Acks and echoes

void Peers::owe_ack(unsigned node, bool at_once, std::int64_t now) {
    const Peer& peer = peers_[node];
    acks_due_.insert(node);
    const bool is_much = published(node) - peer.acked >= own_.config.most_batches / kAcksAWindow ||
                         peer.open_bytes >= kMaxWindowBytes / kAcksAWindow ||
                         peer.open_charged >= out_.window() / kAcksAWindow;
    ack_due_ns_ = std::min(ack_due_ns_, at_once || is_much ? now : now + kAckNs);
}

void Peers::add_acks(DatagramWriter& writer) {
    NodeSet left;
    acks_due_.for_each([&](unsigned node) {
        RMEM_CHECK(takes(node));
        Peer& peer = peers_[node];
        const std::uint64_t up_to = published(node);
        const Ack ack{NodeIncarnation::of(static_cast<std::uint16_t>(node), peer.incarnation),
                      static_cast<std::uint32_t>(up_to)};
        if (writer.add_ack(ack)) {
            peer.acked = up_to;
            // Of what is applied but not published some is open still.
            const bool is_all = up_to == applied(node);
            peer.open_bytes = is_all ? 0 : peer.open_bytes / 2;
            peer.open_charged = is_all ? 0 : peer.open_charged / 2;
        } else {
            left.insert(node);
        }
    });
    acks_due_ = left;
    if (left.empty()) ack_due_ns_ = kNever;
}

void Peers::note_heard(const Header& header, std::int64_t now) noexcept {
    Peer& peer = peers_[header.origin];
    peer.heard_sent_ns = header.sent_ns;
    if (now >= peer.echo_next_ns) echo_to_ = header.origin;
}

void Peers::add_echo(DatagramWriter& writer, std::int64_t now) {
    if (echo_to_ < 0) return;
    const auto node = static_cast<unsigned>(echo_to_);
    Peer& peer = peers_[node];
    const Echo echo{NodeIncarnation::of(static_cast<std::uint16_t>(node), peer.incarnation),
                    peer.heard_sent_ns, now - belief_.heard_ns(node)};
    if (!writer.add_echo(echo)) return;
    echo_to_ = -1;
    peer.echo_next_ns = now + kEchoNs;
}

void Peers::take_echo(const Header& header, const Echo& echo, std::int64_t now) {
    RoundTrip& round_trip = peers_[header.origin].round_trip;
    if (round_trip.add({echo.sent_ns, echo.held_ns, header.sent_ns, now})) {
        note_round_trip(header.origin);
    }
}

// ---- Timers follow round trips, and the order of NAKs that of the ring

RetransmitTimes Peers::times_of(const Peer& peer) const noexcept {
    RetransmitTimes times;
    if (own_.config.is_reliable) {
        times.least_probe_ns = kReliableProbeNs;
        times.least_nak_ns = kReliableNakNs;
    }
    if (peer.round_trip.empty()) return times;
    times.round_trip_ns = peer.round_trip.smoothed_ns();
    times.deviation_ns = peer.round_trip.deviation_ns();
    return times;
}

void Peers::note_round_trip(unsigned node) {
    const Peer& peer = peers_[node];
    const RetransmitTimes times = times_of(peer);
    peer.in->set_times(times, peer.nak_backoff_steps);
    if (node == slowest_) return find_slowest();
    if (times.probe_ns() <= times_of(peers_[slowest_]).probe_ns()) return;
    slowest_ = node;
    out_.set_times(times);
}

void Peers::find_slowest() {
    std::int64_t longest = -1;
    for (unsigned node = 0; node < peers_.size(); ++node) {
        const std::int64_t probe = times_of(peers_[node]).probe_ns();
        if (!takes(node) || probe <= longest) continue;
        longest = probe;
        slowest_ = node;
    }
    out_.set_times(times_of(peers_[slowest_]));
}

void Peers::count_nak_backoff() {
    const unsigned nodes = own_.config.nodes;
    for (unsigned node = 0; node < nodes; ++node) {
        Peer& peer = peers_[node];
        if (!peer.in) continue;
        peer.nak_backoff_steps = 0;
        for (unsigned n = (node + 1) % nodes; n != own_.config.node; n = (n + 1) % nodes) {
            if (takes(n)) ++peer.nak_backoff_steps;
        }
        peer.in->set_times(times_of(peer), peer.nak_backoff_steps);
    }
    find_slowest();
}

}  // namespace rmem::udp
